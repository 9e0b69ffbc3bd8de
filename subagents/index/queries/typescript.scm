; See subagents/index/extract.py for what each capture means.
(class_declaration name: (type_identifier) @name) @d.class
(abstract_class_declaration name: (type_identifier) @name) @d.class
(interface_declaration name: (type_identifier) @name) @d.interface
(enum_declaration name: (identifier) @name) @d.enum
(type_alias_declaration name: (type_identifier) @name) @d.type
(function_signature name: (identifier) @name) @d.function
(method_signature name: (property_identifier) @name) @d.method
(abstract_method_signature name: (property_identifier) @name) @d.method
(interface_body (property_signature name: (property_identifier) @name) @d.field)
(type_alias_declaration value: (object_type (property_signature name: (property_identifier) @name) @d.field))
(internal_module name: (identifier) @name) @d.namespace
(module name: (identifier) @name) @d.namespace
(class name: (type_identifier) @name) @d.class
(function_declaration name: (identifier) @name) @d.function
(generator_function_declaration name: (identifier) @name) @d.function
(method_definition name: [(property_identifier) (private_property_identifier)] @name) @d.method
(variable_declarator name: (identifier) @name value: (arrow_function body: (_) @body)) @d.function
(variable_declarator name: (identifier) @name value: (function_expression body: (_) @body)) @d.function
(variable_declarator name: (identifier) @name value: (generator_function body: (_) @body)) @d.function
(variable_declarator name: (identifier) @name value: (class body: (_) @body)) @d.class
(pair key: (property_identifier) @name value: (arrow_function body: (_) @body)) @d.function
(pair key: (property_identifier) @name value: (function_expression body: (_) @body)) @d.function
(assignment_expression left: (member_expression object: (_) @recv property: (property_identifier) @name) right: (function_expression body: (_) @body)) @d.function
(assignment_expression left: (member_expression object: (_) @recv property: (property_identifier) @name) right: (arrow_function body: (_) @body)) @d.function
(assignment_expression left: (member_expression object: (_) @recv property: (property_identifier) @name) right: (class body: (_) @body)) @d.class
(public_field_definition name: [(property_identifier) (private_property_identifier)] @name value: (arrow_function body: (_) @body)) @d.method
(public_field_definition name: [(property_identifier) (private_property_identifier)] @name) @d.field
(program (lexical_declaration (variable_declarator name: (identifier) @name) @d.variable))
(program (variable_declaration (variable_declarator name: (identifier) @name) @d.variable))
(program (export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @d.variable)))
(decorator) @dec

(call_expression function: (identifier) @call)
(call_expression function: (member_expression object: (_) @recv property: (property_identifier) @call))
(call_expression function: (member_expression object: (_) @recv property: (private_property_identifier) @call))
(new_expression constructor: (identifier) @call)
(new_expression constructor: (member_expression object: (_) @recv property: (property_identifier) @call))
(extends_clause value: [(identifier) (member_expression)] @inherit)
(implements_clause [(type_identifier) (nested_type_identifier)] @inherit)
(implements_clause (generic_type name: (_) @inherit))
(extends_type_clause [(type_identifier) (nested_type_identifier)] @inherit)
(extends_type_clause (generic_type name: (_) @inherit))
(type_annotation (type_identifier) @ref)
(generic_type name: (type_identifier) @ref)
(type_arguments (type_identifier) @ref)
(union_type (type_identifier) @ref)
(as_expression (type_identifier) @ref)
(array_type (type_identifier) @ref)

(arguments (identifier) @ref)
(pair value: (identifier) @ref)
(shorthand_property_identifier) @ref
(array (identifier) @ref)
(return_statement (identifier) @ref)
(variable_declarator value: (identifier) @ref)
(assignment_expression right: (identifier) @ref)
(binary_expression right: (identifier) @ref)
(member_expression object: (identifier) @ref)

(import_statement) @import
(export_statement source: (string)) @import
(variable_declarator value: (call_expression function: (identifier) @_f arguments: (arguments (string))) (#eq? @_f "require")) @import
(expression_statement (call_expression function: (identifier) @_f arguments: (arguments (string))) (#eq? @_f "require")) @import
(variable_declarator value: (await_expression (call_expression function: (import)))) @import
(call_expression function: (import) arguments: (arguments (string))) @import

(variable_declarator name: (identifier) @b.var value: (new_expression constructor: (_) @b.call))
(variable_declarator name: (identifier) @b.var value: (call_expression function: (_) @b.call))
(variable_declarator name: (identifier) @b.var value: (await_expression (call_expression function: (_) @b.call)))
(assignment_expression left: (member_expression object: (this)) @b.var right: (new_expression constructor: (_) @b.call))
(assignment_expression left: (member_expression object: (this)) @b.var right: (call_expression function: (_) @b.call))
(public_field_definition name: (_) @b.var value: (new_expression constructor: (_) @b.call))
(import_alias) @import

(required_parameter . pattern: (identifier) @b.var type: (type_annotation (_) @b.type))
(required_parameter (accessibility_modifier) pattern: (identifier) @b.field type: (type_annotation (_) @b.type))
(required_parameter pattern: (this) @b.var type: (type_annotation (_) @b.type))
(optional_parameter pattern: (identifier) @b.var type: (type_annotation (_) @b.type))
(variable_declarator name: (identifier) @b.var type: (type_annotation (_) @b.type))
(public_field_definition name: (_) @b.var type: (type_annotation (_) @b.type))
(property_signature name: (_) @b.var type: (type_annotation (_) @b.type))
