; See subagents/index/extract.py for what each capture means.
(function_declaration name: (identifier) @name) @d.function
(method_declaration receiver: (parameter_list (parameter_declaration type: (_) @recv)) name: (field_identifier) @name) @d.method
(type_declaration (type_spec name: (type_identifier) @name type: (struct_type)) @d.struct)
(type_declaration (type_spec name: (type_identifier) @name type: (interface_type)) @d.interface)
(type_declaration (type_spec name: (type_identifier) @name) @d.type)
(type_declaration (type_alias name: (type_identifier) @name) @d.type)
(method_elem name: (field_identifier) @name) @d.method
(source_file (const_declaration (const_spec name: (identifier) @name) @d.constant))
(source_file (var_declaration (var_spec name: (identifier) @name) @d.variable))
(source_file (var_declaration (var_spec_list (var_spec name: (identifier) @name) @d.variable)))
(struct_type (field_declaration_list (field_declaration name: (field_identifier) @name) @d.field))

(call_expression function: (identifier) @call)
(call_expression function: (selector_expression operand: (_) @recv field: (field_identifier) @call))
(composite_literal type: (type_identifier) @ref)
(composite_literal type: (qualified_type package: (package_identifier) @recv name: (type_identifier) @ref))
(field_declaration !name type: (type_identifier) @inherit)
(field_declaration !name type: (qualified_type) @inherit)
(type_elem (type_identifier) @inherit)
(type_elem (qualified_type) @inherit)

(parameter_declaration type: (type_identifier) @ref)
(parameter_declaration type: (pointer_type (type_identifier) @ref))
(parameter_declaration type: (qualified_type package: (package_identifier) @recv name: (type_identifier) @ref))
(parameter_declaration type: (pointer_type (qualified_type package: (package_identifier) @recv name: (type_identifier) @ref)))
(field_declaration type: (type_identifier) @ref)
(field_declaration type: (pointer_type (type_identifier) @ref))
(field_declaration type: (qualified_type package: (package_identifier) @recv name: (type_identifier) @ref))
(field_declaration type: (pointer_type (qualified_type package: (package_identifier) @recv name: (type_identifier) @ref)))
(function_declaration result: (type_identifier) @ref)
(function_declaration result: (pointer_type (type_identifier) @ref))
(slice_type element: (type_identifier) @ref)
(map_type value: (type_identifier) @ref)
(argument_list (identifier) @ref)
(argument_list (selector_expression operand: (identifier) @recv field: (field_identifier) @ref))
(keyed_element (_) (literal_element (identifier) @ref))
(literal_value (literal_element (identifier) @ref))
(return_statement (expression_list (identifier) @ref))

(import_spec) @import
(package_clause (package_identifier) @package)

(parameter_declaration name: (identifier) @b.var type: (_) @b.type)
(var_spec name: (identifier) @b.var type: (_) @b.type)
(field_declaration name: (field_identifier) @b.var type: (_) @b.type)
(short_var_declaration left: (expression_list . (identifier) @b.var) right: (expression_list . (call_expression function: (_) @b.call)))
(short_var_declaration left: (expression_list . (identifier) @b.var) right: (expression_list . (composite_literal type: (_) @b.type)))
(short_var_declaration left: (expression_list . (identifier) @b.var) right: (expression_list . (unary_expression operand: (composite_literal type: (_) @b.type))))
