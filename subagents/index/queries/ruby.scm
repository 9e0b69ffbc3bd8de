; See subagents/index/extract.py for what each capture means.
(class name: [(constant) (scope_resolution)] @name) @d.class
(module name: [(constant) (scope_resolution)] @name) @d.module
(method name: (_) @name) @d.function
(singleton_method name: (_) @name) @d.function
(assignment left: (constant) @name) @d.constant
(alias name: (_) @name) @d.method
(call method: (identifier) @_m arguments: (argument_list (simple_symbol) @name) (#any-of? @_m "attr_reader" "attr_accessor" "attr_writer")) @d.property
(call method: (identifier) @_m arguments: (argument_list . (simple_symbol) @name) (#any-of? @_m "define_method" "scope" "has_many" "has_one" "belongs_to" "delegate")) @d.method

(call !receiver method: (identifier) @call)
(call receiver: (_) @recv method: (identifier) @call)
(call receiver: (_) @recv method: (constant) @call)
(body_statement (identifier) @call)
(superclass [(constant) (scope_resolution)] @inherit)
(call !receiver method: (identifier) @_m arguments: (argument_list [(constant) (scope_resolution)] @inherit) (#any-of? @_m "include" "extend" "prepend"))
(constant) @ref

(call !receiver method: (identifier) @_m arguments: (argument_list . (string)) (#any-of? @_m "require" "require_relative" "load")) @import
(call !receiver method: (identifier) @_m arguments: (argument_list (simple_symbol) (string)) (#eq? @_m "autoload")) @import

(assignment left: [(identifier) (instance_variable)] @b.var right: (call receiver: (_) method: (identifier)) @b.call)
