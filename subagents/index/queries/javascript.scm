; See subagents/index/extract.py for what each capture means.
(class_declaration name: (identifier) @name) @d.class
(class name: (identifier) @name) @d.class
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
(field_definition property: [(property_identifier) (private_property_identifier)] @name value: (arrow_function body: (_) @body)) @d.method
(field_definition property: [(property_identifier) (private_property_identifier)] @name) @d.field
(program (lexical_declaration (variable_declarator name: (identifier) @name) @d.variable))
(program (variable_declaration (variable_declarator name: (identifier) @name) @d.variable))
(program (export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @d.variable)))
(decorator) @dec

(call_expression function: (identifier) @call)
(call_expression function: (member_expression object: (_) @recv property: (property_identifier) @call))
(call_expression function: (member_expression object: (_) @recv property: (private_property_identifier) @call))
(new_expression constructor: (identifier) @call)
(new_expression constructor: (member_expression object: (_) @recv property: (property_identifier) @call))
(class_heritage [(identifier) (member_expression)] @inherit)

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
(field_definition property: (_) @b.var value: (new_expression constructor: (_) @b.call))
