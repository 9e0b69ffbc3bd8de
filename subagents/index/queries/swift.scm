; See subagents/index/extract.py for what each capture means.
(class_declaration declaration_kind: "class" name: (type_identifier) @name) @d.class
(class_declaration declaration_kind: "actor" name: (type_identifier) @name) @d.class
(class_declaration declaration_kind: "struct" name: (type_identifier) @name) @d.struct
(class_declaration declaration_kind: "enum" name: (type_identifier) @name) @d.enum
(class_declaration declaration_kind: "extension" name: (user_type (type_identifier) @name)) @scope
(protocol_declaration name: (type_identifier) @name) @d.interface
(function_declaration name: (simple_identifier) @name) @d.function
(protocol_function_declaration name: (simple_identifier) @name) @d.method
(init_declaration "init" @name) @d.constructor
(property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @d.field
(protocol_property_declaration name: (pattern bound_identifier: (simple_identifier) @name)) @d.property
(enum_entry name: (simple_identifier) @name) @d.constant
(typealias_declaration name: (type_identifier) @name) @d.type
(class_declaration (modifiers (attribute) @dec))
(function_declaration (modifiers (attribute) @dec))
(property_declaration (modifiers (attribute) @dec))

(call_expression . (simple_identifier) @call)
(call_expression . (navigation_expression target: (_) @recv suffix: (navigation_suffix suffix: (simple_identifier) @call)))
(inheritance_specifier inherits_from: (user_type (type_identifier) @inherit))
(class_declaration declaration_kind: "extension" name: (user_type (type_identifier) @recv) (inheritance_specifier inherits_from: (user_type (type_identifier) @inherit)))
(user_type (type_identifier) @ref)
(value_argument value: (simple_identifier) @ref)
(import_declaration) @import

(parameter name: (simple_identifier) @b.var (user_type) @b.type)
(property_declaration name: (pattern bound_identifier: (simple_identifier) @b.var) (type_annotation (user_type) @b.type))
(property_declaration name: (pattern bound_identifier: (simple_identifier) @b.var) value: (call_expression) @b.call)
