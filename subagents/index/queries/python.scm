; See subagents/index/extract.py for what each capture means.
(class_definition name: (identifier) @name) @d.class
(function_definition name: (identifier) @name) @d.function
(module (expression_statement (assignment left: (identifier) @name) @d.variable))
(class_definition body: (block (expression_statement (assignment left: (identifier) @name) @d.field)))
(type_alias_statement left: (type (identifier) @name)) @d.type
(decorator) @dec

(call function: (identifier) @call)
(call function: (attribute object: (_) @recv attribute: (identifier) @call))
(class_definition superclasses: (argument_list [(identifier) (attribute)] @inherit))
(class_definition superclasses: (argument_list (subscript value: [(identifier) (attribute)] @inherit)))

(type (identifier) @ref)
(type (generic_type (identifier) @ref))
(type (binary_operator (identifier) @ref))
(type (attribute attribute: (identifier) @ref))
(argument_list (identifier) @ref)
(argument_list (attribute object: (_) @recv attribute: (identifier) @ref))
(keyword_argument value: (identifier) @ref)
(except_clause (identifier) @ref)
(except_clause (as_pattern (identifier) @ref))
(except_clause (tuple (identifier) @ref))
(list (identifier) @ref)
(tuple (identifier) @ref)
(pair value: (identifier) @ref)
(return_statement (identifier) @ref)
(assignment right: (identifier) @ref)
(default_parameter value: (identifier) @ref)
(comparison_operator (identifier) @ref)
(raise_statement (identifier) @ref)

(import_statement) @import
(import_from_statement) @import
(future_import_statement) @import

(assignment left: (identifier) @b.var right: (call function: (_) @b.call))
(assignment left: (attribute) @b.var right: (call function: (_) @b.call))
(assignment left: (identifier) @b.var type: (type) @b.type)
(assignment left: (attribute) @b.var type: (type) @b.type)
(assignment left: (attribute object: (identifier) @_self) @b.var right: (identifier) @b.id (#eq? @_self "self"))
(typed_parameter . (identifier) @b.var type: (type) @b.type)
(typed_default_parameter name: (identifier) @b.var type: (type) @b.type)
(as_pattern (call function: (_) @b.call) alias: (as_pattern_target (identifier) @b.var))
