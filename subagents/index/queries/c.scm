; See subagents/index/extract.py for what each capture means.
(function_definition declarator: (function_declarator declarator: (identifier) @name)) @d.function
(function_definition declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))) @d.function
(function_definition declarator: (pointer_declarator declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name)))) @d.function
(function_definition declarator: (function_declarator declarator: (parenthesized_declarator (identifier) @name))) @d.function
(translation_unit (declaration declarator: (function_declarator declarator: (identifier) @name)) @d.function)
(translation_unit (declaration declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))) @d.function)
(preproc_ifdef (declaration declarator: (function_declarator declarator: (identifier) @name)) @d.function)
(preproc_ifdef (declaration declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))) @d.function)
(linkage_specification (declaration_list (declaration declarator: (function_declarator declarator: (identifier) @name)) @d.function))
(linkage_specification (declaration_list (declaration declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))) @d.function))
(struct_specifier name: (type_identifier) @name body: (_)) @d.struct
(union_specifier name: (type_identifier) @name body: (_)) @d.struct
(enum_specifier name: (type_identifier) @name body: (_)) @d.enum
(type_definition declarator: (type_identifier) @name) @d.type
(type_definition declarator: (pointer_declarator declarator: (type_identifier) @name)) @d.type
(type_definition declarator: (function_declarator declarator: (parenthesized_declarator (pointer_declarator declarator: (type_identifier) @name)))) @d.type
(preproc_def name: (identifier) @name value: (_)) @d.macro
(preproc_function_def name: (identifier) @name) @d.macro
(translation_unit (declaration declarator: (init_declarator declarator: (identifier) @name)) @d.variable)
(translation_unit (declaration declarator: (init_declarator declarator: (array_declarator declarator: (identifier) @name))) @d.variable)
(translation_unit (declaration declarator: (init_declarator declarator: (pointer_declarator declarator: (identifier) @name))) @d.variable)
(translation_unit (declaration declarator: (identifier) @name) @d.variable)
(enumerator name: (identifier) @name) @d.constant
(field_declaration declarator: (field_identifier) @name) @d.field
(field_declaration declarator: (pointer_declarator declarator: (field_identifier) @name)) @d.field
(field_declaration declarator: (function_declarator declarator: (parenthesized_declarator (pointer_declarator declarator: (field_identifier) @name)))) @d.field

(call_expression function: (identifier) @call)
(call_expression function: (field_expression argument: (_) @recv field: (field_identifier) @call))
(argument_list (identifier) @ref)
(argument_list (pointer_expression argument: (identifier) @ref))
(initializer_pair value: (identifier) @ref)
(initializer_list (identifier) @ref)
(assignment_expression right: (identifier) @ref)
(type_identifier) @ref

(preproc_include) @import

(parameter_declaration type: (_) @b.type declarator: (pointer_declarator declarator: (identifier) @b.var))
