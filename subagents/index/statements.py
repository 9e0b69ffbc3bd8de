"""Import statements taken apart as text: what they name, under which alias. One function a language."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Names = tuple[tuple[str, str], ...]
"""(name, alias) pairs; the alias is the name itself when there is none, `*` stands for everything."""


@dataclass(frozen=True, slots=True)
class Import:
    """`module` as written; `local` is the name that stands for the module as a whole, or empty."""

    module: str
    names: Names = ()
    local: str = ""


_SPACE = re.compile(r"\s+")
_PY_COMMENT = re.compile(r"#[^\n]*")
_QUOTED = re.compile(r"""["'`]([^"'`\n]+)["'`]""")


def _names(text: str, separator: str = " as ") -> Names:
    found = []
    for part in text.split(","):
        name, _, alias = part.strip().partition(separator)
        name = name.strip()
        if name:
            found.append((name, alias.strip() or name))
    return tuple(found)


def python(text: str) -> Iterator[Import]:
    if "#" in text:
        text = _PY_COMMENT.sub("", text)
    text = _SPACE.sub(" ", text.replace("\\\n", " "))
    if text.startswith("from "):
        module, _, names = text[5:].partition(" import ")
        if not names:
            module, _, names = text[5:].partition(" import(")
        yield Import(module.replace(" ", ""), _names(names.strip(" ()")))
        return
    for name, alias in _names(text.removeprefix("import ")):
        yield Import(name, (), alias if alias != name else name)


_JS_FROM = re.compile(r"""^(?:import|export)\s+(?:type\s+)?(.*?)\s*from\s*["']([^"'\n]+)["']""", re.DOTALL)
_JS_REQUIRE = re.compile(r"""^(?:(?:const|let|var)\s+)?(.*?)\s*=\s*(?:await\s+)?(?:require|import)\s*\(""", re.DOTALL)
_TS_REQUIRE = re.compile(r"""^import\s+(\w+)\s*=\s*require""")


def javascript(text: str) -> Iterator[Import]:
    quoted = _QUOTED.search(text)
    match = _JS_FROM.match(text)
    if match:
        clause, module = match.groups()
        yield _js_clause(clause, module)
    elif quoted:
        required = _TS_REQUIRE.match(text) or _JS_REQUIRE.match(text)
        yield _js_clause(required[1], quoted[1], ":") if required else Import(quoted[1])


def _js_clause(clause: str, module: str, separator: str = " as ") -> Import:
    before, brace, inside = clause.partition("{")
    names: list[tuple[str, str]] = []
    if brace:
        for name, alias in _names(_SPACE.sub(" ", inside.partition("}")[0]), separator):
            names.append((name.removeprefix("type ").strip(), alias.removeprefix("type ").strip()))
    local = ""
    for part in before.split(","):
        word = part.strip()
        if word.startswith("*"):
            local = word.partition(" as ")[2].strip()
            if not local:
                names.append(("*", "*"))
        elif word.isidentifier() or "$" in word:
            names.append(("default", word))
            local = local or word
    return Import(module, tuple(names), local)


_GO_SPEC = re.compile(r"""^\s*(?:([\w.]+)\s+)?["`]([^"`]+)["`]""")


def go(text: str) -> Iterator[Import]:
    match = _GO_SPEC.match(text)
    if match:
        alias, module = match.groups()
        if alias == ".":
            yield Import(module, (("*", "*"),))
        else:
            last = module.rpartition("/")[2]
            if re.fullmatch(r"v\d+", last):
                last = module.rpartition("/")[0].rpartition("/")[2]
            yield Import(module, (), alias or last)


def rust(text: str) -> Iterator[Import]:
    text = _SPACE.sub(" ", text).strip().rstrip(";").strip()
    text = re.sub(r"^pub(\([^)]*\))? ", "", text)
    if text.startswith("mod "):
        name = text[4:].strip()
        yield Import(f"mod {name}", (), name)
    elif text.startswith("extern crate "):
        name, _, alias = text[13:].partition(" as ")
        yield Import(name.strip(), (), (alias or name).strip())
    elif text.startswith("use "):
        yield from _rust_use(text[4:].strip(), "")


def _rust_use(tree: str, prefix: str) -> Iterator[Import]:
    """`tree` is what stands at one place of a use tree; recursion is bounded by the braces of one statement."""
    work = [(tree, prefix)]
    while work:
        tree, prefix = work.pop()
        if "{" in tree:
            head, _, rest = tree.partition("{")
            inner = rest.rpartition("}")[0]
            base = (prefix + head.strip()).rstrip(":")
            work.extend((part, base + "::" if base else "") for part in reversed(_split_top(inner)))
            continue
        name, _, alias = tree.strip().partition(" as ")
        path = prefix + name.strip()
        if not path:
            continue
        module, _, last = path.rpartition("::")
        if last == "self":
            module, _, last = module.rpartition("::")
        yield Import(module or last, ((last, alias.strip() or last),))


def _split_top(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for i, char in enumerate(text):
        if char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def java(text: str) -> Iterator[Import]:
    words = _SPACE.sub(" ", text).strip().rstrip(";").removeprefix("import ").strip()
    static = words.startswith("static ")
    path = words.removeprefix("static ").replace(" ", "")
    module, _, last = path.rpartition(".")
    if last == "*":
        yield Import(module, (("*", "*"),))
    elif static:
        yield Import(module, ((last, last),))
    else:
        yield Import(path, ((last, last),))


def kotlin(text: str) -> Iterator[Import]:
    path, _, alias = _SPACE.sub(" ", text).strip().rstrip(";").removeprefix("import ").strip().partition(" as ")
    module, _, last = path.rpartition(".")
    if last == "*":
        yield Import(module, (("*", "*"),))
    else:
        yield Import(path, ((last, alias.strip() or last),))


def scala(text: str) -> Iterator[Import]:
    for part in _split_top(_SPACE.sub(" ", text).strip().removeprefix("import ").strip()):
        head, brace, rest = part.partition("{")
        if brace:
            module = head.strip().rstrip(".")
            names = _names(rest.partition("}")[0].replace("=>", " as "))
            yield Import(module, tuple(("*", "*") if name in "_*" else (name, alias) for name, alias in names))
            continue
        path, _, alias = part.partition(" as ")
        module, _, last = path.strip().rpartition(".")
        if last in ("_", "*"):
            yield Import(module, (("*", "*"),))
        else:
            yield Import(path.strip(), ((last, alias.strip() or last),))


_INCLUDE = re.compile(r"""(?:include|import|include_next)\s*(<[^>\n]+>|"[^"\n]+")""")


def c(text: str) -> Iterator[Import]:
    match = _INCLUDE.search(text)
    if match:
        yield Import(match[1], (("*", "*"),))


_CS_USING = re.compile(r"^(?:global )?using (?:static )?(?:(\w+) = )?([\w.:<>, ]+?) ?;?$")


def csharp(text: str) -> Iterator[Import]:
    match = _CS_USING.match(_SPACE.sub(" ", text).strip())
    if match:
        alias, module = match.groups()
        if alias:
            yield Import(module, ((module.rpartition(".")[2], alias),))
        else:
            yield Import(module.removeprefix("global::"), (("*", "*"),))


_RUBY = re.compile(r"""^(require|require_relative|load|autoload)\b[\s(]*(?::(\w+)\s*,\s*)?["']([^"'#]+)["']""")


def ruby(text: str) -> Iterator[Import]:
    match = _RUBY.match(text)
    if match:
        how, constant, module = match.groups()
        names = ((constant, constant),) if constant else (("*", "*"),)
        relative = how == "require_relative" and not module.startswith((".", "/"))
        yield Import("./" + module if relative else module, names)


_PHP_REQUIRE = re.compile(r"""^(?:require|include)(?:_once)?\b(.*)""", re.DOTALL)
_PHP_USE = re.compile(r"^use (?:(?:function|const) )?(.*?) ?;?$")


def php(text: str) -> Iterator[Import]:
    folded = _SPACE.sub(" ", text).strip()
    required = _PHP_REQUIRE.match(folded)
    if required:
        quoted = _QUOTED.search(required[1])
        if quoted:
            here = "__DIR__" in required[1] or "dirname(__FILE__)" in required[1]
            yield Import(("./" + quoted[1].lstrip("/")) if here else quoted[1], (("*", "*"),))
        return
    match = _PHP_USE.match(folded)
    if match:
        head, brace, rest = match[1].partition("{")
        parts = [(head + part, alias) for part, alias in _names(rest.partition("}")[0])] if brace else _names(match[1])
        for path, alias in parts:
            path = path.strip().lstrip("\\")
            last = path.rpartition("\\")[2]
            yield Import(path, ((last, alias.rpartition("\\")[2] or last),))


def swift(text: str) -> Iterator[Import]:
    words = [word for word in _SPACE.sub(" ", text).strip().split(" ") if not word.startswith("@")]
    if words and words[0] == "import":
        words = words[1:]
    if len(words) > 1 and words[0] in ("class", "struct", "enum", "protocol", "func", "var", "let", "typealias"):
        words = words[1:]
    if words:
        yield Import(words[0].partition(".")[0], (("*", "*"),))


_BASH = re.compile(r"""^(?:source|\.)\s+(\S.*)$""", re.DOTALL)


def bash(text: str) -> Iterator[Import]:
    match = _BASH.match(text.strip())
    if match:
        path = match[1].strip().strip("\"'")
        path = re.sub(r"^(?:\$\{?\w+\}?|\$\(.*\))/", "./", path).replace('"', "").replace("'", "")
        if path and "$" not in path and "\n" not in path:
            yield Import(path, (("*", "*"),))


PARSERS: dict[str, Callable[[str], Iterator[Import]]] = {
    "python": python,
    "javascript": javascript,
    "typescript": javascript,
    "tsx": javascript,
    "go": go,
    "rust": rust,
    "java": java,
    "kotlin": kotlin,
    "scala": scala,
    "c": c,
    "cpp": c,
    "c_sharp": csharp,
    "ruby": ruby,
    "php": php,
    "swift": swift,
    "bash": bash,
}
