; See subagents/index/extract.py for what each capture means.
(function_item name: (identifier) @name) @d.function
(function_signature_item name: (identifier) @name) @d.function
(struct_item name: (type_identifier) @name) @d.struct
(enum_item name: (type_identifier) @name) @d.enum
(union_item name: (type_identifier) @name) @d.struct
(trait_item name: (type_identifier) @name) @d.trait
(type_item name: (type_identifier) @name) @d.type
(mod_item name: (identifier) @name body: (declaration_list)) @d.module
(const_item name: (identifier) @name) @d.constant
(static_item name: (identifier) @name) @d.constant
(macro_definition name: (identifier) @name) @d.macro
(field_declaration name: (field_identifier) @name) @d.field
(enum_variant name: (identifier) @name) @d.constant
(impl_item type: (type_identifier) @name) @scope
(impl_item type: (generic_type type: (type_identifier) @name)) @scope
(impl_item type: (scoped_type_identifier name: (type_identifier) @name)) @scope
(impl_item type: (reference_type type: (type_identifier) @name)) @scope
(attribute_item) @dec

(call_expression function: (identifier) @call)
(call_expression function: (field_expression value: (_) @recv field: (field_identifier) @call))
(call_expression function: (scoped_identifier path: (_) @recv name: (identifier) @call))
(call_expression function: (generic_function function: (identifier) @call))
(call_expression function: (generic_function function: (scoped_identifier path: (_) @recv name: (identifier) @call)))
(call_expression function: (generic_function function: (field_expression value: (_) @recv field: (field_identifier) @call)))
(macro_invocation macro: (identifier) @call)
; what stands in a macro's arguments is not parsed, but a call is written there as anywhere
(token_tree [(self) (identifier)] @recv . "." . (identifier) @call . (token_tree))
(token_tree (identifier) @recv . "::" . (identifier) @call . (token_tree))
(struct_expression name: (type_identifier) @call)
(struct_expression name: (scoped_type_identifier path: (_) @recv name: (type_identifier) @call))
(impl_item trait: (type_identifier) @inherit type: (_) @recv)
(impl_item trait: (scoped_type_identifier) @inherit type: (_) @recv)
(impl_item trait: (generic_type type: (_) @inherit) type: (_) @recv)
(trait_item bounds: (trait_bounds [(type_identifier) (scoped_type_identifier)] @inherit))

(parameter type: (type_identifier) @ref)
(parameter type: (reference_type type: (type_identifier) @ref))
(type_arguments (type_identifier) @ref)
(generic_type type: (type_identifier) @ref)
(function_item return_type: (type_identifier) @ref)
(field_declaration type: (type_identifier) @ref)
(trait_bounds (type_identifier) @ref)
(arguments (identifier) @ref)
(arguments (scoped_identifier path: (_) @recv name: (identifier) @ref))
(scoped_identifier path: (identifier) @ref name: (identifier))
(dynamic_type (type_identifier) @ref)

(use_declaration) @import
(mod_item !body) @import
(extern_crate_declaration) @import

(parameter pattern: (identifier) @b.var type: (_) @b.type)
(let_declaration pattern: (identifier) @b.var type: (_) @b.type)
(let_declaration pattern: (identifier) @b.var value: (call_expression function: (_) @b.call))
(let_declaration pattern: (identifier) @b.var value: (await_expression (call_expression function: (_) @b.call)))
(let_declaration pattern: (identifier) @b.var value: (try_expression (call_expression function: (_) @b.call)))
(let_declaration pattern: (identifier) @b.var value: (struct_expression name: (_) @b.type))
(field_declaration name: (field_identifier) @b.var type: (_) @b.type)
