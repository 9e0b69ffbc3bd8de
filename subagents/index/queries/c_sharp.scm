; See subagents/index/extract.py for what each capture means.
(class_declaration name: (identifier) @name) @d.class
(record_declaration name: (identifier) @name) @d.class
(struct_declaration name: (identifier) @name) @d.struct
(interface_declaration name: (identifier) @name) @d.interface
(enum_declaration name: (identifier) @name) @d.enum
(delegate_declaration name: (identifier) @name) @d.type
(method_declaration name: (identifier) @name) @d.method
(local_function_statement name: (identifier) @name) @d.function
(constructor_declaration name: (identifier) @name) @d.constructor
(property_declaration name: (identifier) @name) @d.property
(event_field_declaration (variable_declaration (variable_declarator name: (identifier) @name))) @d.field
(field_declaration (variable_declaration (variable_declarator name: (identifier) @name))) @d.field
(enum_member_declaration name: (identifier) @name) @d.constant
(class_declaration (attribute_list) @dec)
(struct_declaration (attribute_list) @dec)
(interface_declaration (attribute_list) @dec)
(method_declaration (attribute_list) @dec)
(property_declaration (attribute_list) @dec)
(constructor_declaration (attribute_list) @dec)

(invocation_expression function: (identifier) @call)
(invocation_expression function: (generic_name (identifier) @call))
(invocation_expression function: (member_access_expression expression: (_) @recv name: (identifier) @call))
(invocation_expression function: (member_access_expression expression: (_) @recv name: (generic_name (identifier) @call)))
(invocation_expression function: (conditional_access_expression condition: (_) @recv (member_binding_expression name: (identifier) @call)))
(object_creation_expression type: (identifier) @call)
(object_creation_expression type: (generic_name (identifier) @call))
(object_creation_expression type: (qualified_name qualifier: (_) @recv name: (identifier) @call))
(base_list [(identifier) (qualified_name)] @inherit)
(base_list (generic_name (identifier) @inherit))
(base_list (primary_constructor_base_type type: (identifier) @inherit))

(type_argument_list (identifier) @ref)
(parameter type: (identifier) @ref)
(variable_declaration type: (identifier) @ref)
(property_declaration type: (identifier) @ref)
(method_declaration returns: (identifier) @ref)
(generic_name (identifier) @ref)
(argument (identifier) @ref)
(argument (member_access_expression expression: (identifier) @recv name: (identifier) @ref))

(using_directive) @import
(namespace_declaration name: (_) @package)
(file_scoped_namespace_declaration name: (_) @package)

(parameter type: (_) @b.type name: (identifier) @b.var)
(property_declaration type: (_) @b.type name: (identifier) @b.var)
(variable_declaration type: (implicit_type) (variable_declarator name: (identifier) @b.var (object_creation_expression type: (_) @b.type)))
(variable_declaration type: (implicit_type) (variable_declarator name: (identifier) @b.var (invocation_expression function: (_) @b.call)))
(variable_declaration type: (implicit_type) (variable_declarator name: (identifier) @b.var (await_expression (invocation_expression function: (_) @b.call))))
(variable_declaration type: [(identifier) (generic_name) (qualified_name) (nullable_type)] @b.type (variable_declarator name: (identifier) @b.var))
(foreach_statement type: [(identifier) (generic_name)] @b.type left: (identifier) @b.var)
