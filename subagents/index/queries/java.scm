; See subagents/index/extract.py for what each capture means.
(class_declaration name: (identifier) @name) @d.class
(record_declaration name: (identifier) @name) @d.class
(interface_declaration name: (identifier) @name) @d.interface
(annotation_type_declaration name: (identifier) @name) @d.interface
(enum_declaration name: (identifier) @name) @d.enum
(method_declaration name: (identifier) @name) @d.method
(constructor_declaration name: (identifier) @name) @d.constructor
(compact_constructor_declaration name: (identifier) @name) @d.constructor
(field_declaration declarator: (variable_declarator name: (identifier) @name)) @d.field
(constant_declaration declarator: (variable_declarator name: (identifier) @name)) @d.constant
(enum_constant name: (identifier) @name) @d.constant
(class_declaration (modifiers [(annotation) (marker_annotation)] @dec))
(interface_declaration (modifiers [(annotation) (marker_annotation)] @dec))
(enum_declaration (modifiers [(annotation) (marker_annotation)] @dec))
(record_declaration (modifiers [(annotation) (marker_annotation)] @dec))
(method_declaration (modifiers [(annotation) (marker_annotation)] @dec))
(constructor_declaration (modifiers [(annotation) (marker_annotation)] @dec))
(field_declaration (modifiers [(annotation) (marker_annotation)] @dec))

(method_invocation !object name: (identifier) @call)
(method_invocation object: (_) @recv name: (identifier) @call)
(object_creation_expression type: (type_identifier) @call)
(object_creation_expression type: (generic_type (type_identifier) @call))
(object_creation_expression type: (scoped_type_identifier (type_identifier) @recv (type_identifier) @call))
(method_reference . (_) @recv (identifier) @call .)
(superclass [(type_identifier) (scoped_type_identifier)] @inherit)
(superclass (generic_type . (_) @inherit))
(super_interfaces (type_list [(type_identifier) (scoped_type_identifier)] @inherit))
(super_interfaces (type_list (generic_type . (_) @inherit)))
(extends_interfaces (type_list [(type_identifier) (scoped_type_identifier)] @inherit))
(extends_interfaces (type_list (generic_type . (_) @inherit)))

(type_identifier) @ref
(argument_list (identifier) @ref)
(field_access object: (identifier) @recv field: (identifier) @ref)

(import_declaration) @import
(package_declaration [(scoped_identifier) (identifier)] @package)

(formal_parameter type: (_) @b.type name: (identifier) @b.var)
(field_declaration type: (_) @b.type declarator: (variable_declarator name: (identifier) @b.var))
(local_variable_declaration type: (type_identifier) @_t declarator: (variable_declarator name: (identifier) @b.var value: (method_invocation) @b.call) (#eq? @_t "var"))
(local_variable_declaration type: (type_identifier) @_t declarator: (variable_declarator name: (identifier) @b.var value: (object_creation_expression type: (_) @b.type)) (#eq? @_t "var"))
(local_variable_declaration type: (_) @b.type declarator: (variable_declarator name: (identifier) @b.var) (#not-eq? @b.type "var"))
(enhanced_for_statement type: (_) @b.type name: (identifier) @b.var)
(resource type: (_) @b.type name: (identifier) @b.var)
(catch_formal_parameter (catch_type (_) @b.type) name: (identifier) @b.var)
