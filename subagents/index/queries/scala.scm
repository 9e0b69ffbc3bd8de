; See subagents/index/extract.py for what each capture means.
(class_definition name: (identifier) @name) @d.class
(object_definition name: (identifier) @name) @d.class
(trait_definition name: (identifier) @name) @d.trait
(enum_definition name: (identifier) @name) @d.enum
(function_definition name: (identifier) @name) @d.function
(function_declaration name: (identifier) @name) @d.function
(type_definition name: (type_identifier) @name) @d.type
(simple_enum_case name: (identifier) @name) @d.constant
(template_body (val_definition pattern: (identifier) @name) @d.field)
(template_body (var_definition pattern: (identifier) @name) @d.field)
(compilation_unit (val_definition pattern: (identifier) @name) @d.variable)
(annotation) @dec

(call_expression function: (identifier) @call)
(call_expression function: (field_expression value: (_) @recv field: (identifier) @call))
(call_expression function: (generic_function function: (identifier) @call))
(call_expression function: (generic_function function: (field_expression value: (_) @recv field: (identifier) @call)))
(instance_expression (type_identifier) @call)
(instance_expression (generic_type type: (type_identifier) @call))
(infix_expression left: (_) @recv operator: (identifier) @call)
(extends_clause (type_identifier) @inherit)
(extends_clause (generic_type type: (type_identifier) @inherit))
(extends_clause (compound_type (type_identifier) @inherit))
(type_identifier) @ref
(arguments (identifier) @ref)
(import_declaration) @import
(package_clause name: (_) @package)

(parameter name: (identifier) @b.var type: (_) @b.type)
(class_parameter name: (identifier) @b.var type: (_) @b.type)
(val_definition pattern: (identifier) @b.var type: (_) @b.type)
(val_definition pattern: (identifier) @b.var value: (instance_expression . (_) @b.type))
(val_definition pattern: (identifier) @b.var value: (call_expression function: (_) @b.call))
