; See subagents/index/extract.py for what each capture means.
(function_definition name: (word) @name) @d.function
(program (variable_assignment name: (variable_name) @name) @d.variable)
(program (declaration_command (variable_assignment name: (variable_name) @name) @d.variable))

(command name: (command_name (word) @call))
(simple_expansion (variable_name) @ref)
(expansion (variable_name) @ref)

(command name: (command_name (word) @_c) (#any-of? @_c "source" ".")) @import
