; See subagents/index/extract.py for what each capture means.
(class_declaration "class" name: (identifier) @name (enum_class_body)) @d.enum
(class_declaration "class" name: (identifier) @name) @d.class
(class_declaration "interface" name: (identifier) @name) @d.interface
(object_declaration name: (identifier) @name) @d.class
(function_declaration name: (identifier) @name) @d.function
(class_body (secondary_constructor "constructor" @name) @d.constructor)
(class_body (property_declaration (variable_declaration . (identifier) @name)) @d.field)
(source_file (property_declaration (variable_declaration . (identifier) @name)) @d.variable)
(class_parameter ["val" "var"] (identifier) @name) @d.field
(enum_entry . (identifier) @name) @d.constant
(type_alias type: (identifier) @name) @d.type
(class_declaration (modifiers (annotation) @dec))
(function_declaration (modifiers (annotation) @dec))
(property_declaration (modifiers (annotation) @dec))

(call_expression . (identifier) @call)
(call_expression . (navigation_expression (_) @recv (identifier) @call .))
(delegation_specifier (user_type . (identifier) @inherit))
(delegation_specifier (constructor_invocation (user_type . (identifier) @inherit)))
(user_type (identifier) @ref)
(value_argument (identifier) @ref)
(import) @import
(package_header (qualified_identifier) @package)

(parameter . (identifier) @b.var (_) @b.type)
(class_parameter (identifier) @b.var . [(user_type) (nullable_type)] @b.type)
(property_declaration (variable_declaration (identifier) @b.var [(user_type) (nullable_type)] @b.type))
(property_declaration (variable_declaration . (identifier) @b.var .) (call_expression) @b.call)
