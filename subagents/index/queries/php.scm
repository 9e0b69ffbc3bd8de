; See subagents/index/extract.py for what each capture means.
(class_declaration name: (name) @name) @d.class
(interface_declaration name: (name) @name) @d.interface
(trait_declaration name: (name) @name) @d.trait
(enum_declaration name: (name) @name) @d.enum
(function_definition name: (name) @name) @d.function
(method_declaration name: (name) @name) @d.method
(property_declaration (property_element name: (variable_name (name) @name))) @d.field
(property_promotion_parameter name: (variable_name (name) @name)) @d.field
(const_declaration (const_element . (name) @name)) @d.constant
(enum_case name: (name) @name) @d.constant
(attribute_list (attribute_group) @dec)

(function_call_expression function: (name) @call)
(function_call_expression function: (qualified_name (name) @call))
(member_call_expression object: (_) @recv name: (name) @call)
(nullsafe_member_call_expression object: (_) @recv name: (name) @call)
(scoped_call_expression scope: (_) @recv name: (name) @call)
(object_creation_expression (name) @call)
(object_creation_expression (qualified_name (name) @call))
(base_clause [(name) (qualified_name)] @inherit)
(class_interface_clause [(name) (qualified_name)] @inherit)
(use_declaration [(name) (qualified_name)] @inherit)

(named_type (name) @ref)
(named_type (qualified_name (name) @ref))
(class_constant_access_expression . (name) @recv (name) @ref)
(scoped_property_access_expression scope: (name) @ref)
(binary_expression right: (name) @ref)

(namespace_use_declaration) @import
(require_once_expression) @import
(require_expression) @import
(include_expression) @import
(include_once_expression) @import
(namespace_definition name: (namespace_name) @package)

(simple_parameter type: (_) @b.type name: (variable_name) @b.var)
(property_promotion_parameter type: (_) @b.type name: (variable_name) @b.field)
(property_declaration type: (_) @b.type (property_element name: (variable_name) @b.var))
(assignment_expression left: [(variable_name) (member_access_expression)] @b.var right: (object_creation_expression [(name) (qualified_name)] @b.type))
(assignment_expression left: (variable_name) @b.var right: [(member_call_expression) (scoped_call_expression) (function_call_expression)] @b.call)
(assignment_expression left: (member_access_expression) @b.var right: (variable_name) @b.id)
