; See subagents/index/extract.py for what each capture means.
(function_definition declarator: (function_declarator declarator: (identifier) @name)) @d.function
(function_definition declarator: (function_declarator declarator: [(qualified_identifier) (field_identifier) (destructor_name) (operator_name)] @name)) @d.function
(function_definition declarator: (pointer_declarator declarator: (function_declarator declarator: [(qualified_identifier) (field_identifier)] @name))) @d.function
(function_definition declarator: (reference_declarator (function_declarator declarator: [(identifier) (qualified_identifier) (field_identifier) (operator_name)] @name))) @d.function
(field_declaration declarator: (function_declarator declarator: (field_identifier) @name)) @d.method
(field_declaration declarator: (pointer_declarator declarator: (function_declarator declarator: (field_identifier) @name))) @d.method
(field_declaration declarator: (reference_declarator (function_declarator declarator: (field_identifier) @name))) @d.method
(declaration_list (declaration declarator: (function_declarator declarator: (identifier) @name)) @d.function)
(field_declaration_list (declaration declarator: (function_declarator declarator: [(identifier) (destructor_name)] @name)) @d.method)
(class_specifier name: (type_identifier) @name body: (_)) @d.class
(class_specifier name: (template_type name: (type_identifier) @name) body: (_)) @d.class
(alias_declaration name: (type_identifier) @name) @d.type
(concept_definition name: (identifier) @name) @d.type
(function_definition declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))) @d.function
(function_definition declarator: (pointer_declarator declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name)))) @d.function
(function_definition declarator: (function_declarator declarator: (parenthesized_declarator (identifier) @name))) @d.function
(translation_unit (declaration declarator: (function_declarator declarator: (identifier) @name)) @d.function)
(translation_unit (declaration declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))) @d.function)
(preproc_ifdef (declaration declarator: (function_declarator declarator: (identifier) @name)) @d.function)
(preproc_ifdef (declaration declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))) @d.function)
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

(call_expression function: (qualified_identifier scope: (_) @recv name: (identifier) @call))
(call_expression function: (qualified_identifier scope: (_) @recv name: (qualified_identifier name: (identifier) @call)))
(call_expression function: (template_function name: (identifier) @call))
(call_expression function: (qualified_identifier scope: (_) @recv name: (template_function name: (identifier) @call)))
(call_expression function: (field_expression argument: (_) @recv field: (template_method name: (field_identifier) @call)))
(new_expression type: (type_identifier) @call)
(new_expression type: (qualified_identifier name: (type_identifier) @call))
(new_expression type: (template_type name: (type_identifier) @call))
(base_class_clause [(type_identifier) (qualified_identifier)] @inherit)
(base_class_clause (template_type name: (type_identifier) @inherit))
(field_initializer_list (field_initializer (template_method name: (field_identifier) @call)))

(parameter_declaration type: (_) @b.type declarator: (identifier) @b.var)
(parameter_declaration type: (_) @b.type declarator: (reference_declarator (identifier) @b.var))
(declaration type: [(type_identifier) (qualified_identifier) (template_type)] @b.type declarator: (identifier) @b.var)
(declaration type: [(type_identifier) (qualified_identifier) (template_type)] @b.type declarator: (pointer_declarator declarator: (identifier) @b.var))
(declaration type: [(type_identifier) (qualified_identifier) (template_type)] @b.type declarator: (init_declarator declarator: (identifier) @b.var))
(declaration type: [(type_identifier) (qualified_identifier) (template_type)] @b.type declarator: (init_declarator declarator: (pointer_declarator declarator: (identifier) @b.var)))
(declaration type: (placeholder_type_specifier) declarator: (init_declarator declarator: (identifier) @b.var value: (call_expression function: (_) @b.call)))
(declaration type: (placeholder_type_specifier) declarator: (init_declarator declarator: (identifier) @b.var value: (new_expression type: (_) @b.type)))
(declaration type: (placeholder_type_specifier) declarator: (init_declarator declarator: (pointer_declarator declarator: (identifier) @b.var) value: (new_expression type: (_) @b.type)))
(field_declaration type: (_) @b.type declarator: (field_identifier) @b.var)
(field_declaration type: (_) @b.type declarator: (pointer_declarator declarator: (field_identifier) @b.var))
(field_declaration type: (_) @b.type declarator: (reference_declarator (field_identifier) @b.var))
