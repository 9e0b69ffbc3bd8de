"""What one file defines, refers to, imports and binds, drawn from its syntax tree by queries.

The queries (queries/*.scm) do the walking in C; Python sees only what they capture, because visiting every node from
Python costs many times the parse. Captures:

    @d.<kind> @name    a definition and its name; optionally @recv (the type a method belongs to), @body
    @scope @name       something that nests definitions without being one (Rust impl, Swift extension)
    @call [@recv]      a called name, and what stands before the dot
    @ref [@recv]       a name used otherwise
    @inherit [@recv]   a base; @recv: the deriving type, when it is not the enclosing definition
    @dec               a decorator or annotation; it belongs to the next name that is defined
    @import            a statement for statements.py
    @package           the package or namespace of the file
    @b.var with @b.call, @b.type or @b.id    a variable, and what tells its type; @b.field: a parameter that is a field

No recursion anywhere, so nesting as deep as a hostile file likes costs nothing but time.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from subagents.index.grammars import parser_and_query
from subagents.index.languages import GRAMMARS
from subagents.index.rows import BY_ALIAS, BY_CALL, BY_TYPE, CALL, DECORATOR, INHERIT, NAME, ImportRow, SymbolRow
from subagents.index.statements import PARSERS

if TYPE_CHECKING:
    from tree_sitter import Node

SIGNATURE_CHARS: Final = 200
DOC_CHARS: Final = 200
MAX_REFERENCES: Final = 200_000
"""A file; what comes after is cut. Hand-written files stay far below."""


@dataclass(slots=True)
class Extracted:
    """`references` holds triples (line, name, receiver * 8 + kind), `bindings` triples (line, variable,
    expression * 4 + how); names, receivers, variables and expressions are places in `strings`."""

    symbols: list[SymbolRow] = field(default_factory=list)
    strings: list[str] = field(default_factory=list)
    references: array[int] = field(default_factory=lambda: array("I"))
    bindings: array[int] = field(default_factory=lambda: array("I"))
    imports: list[ImportRow] = field(default_factory=list)
    package: str = ""
    errors: bool = False
    """The tree holds syntax errors; what could be read was."""
    cut: bool = False


_Enclosing = tuple[int, str, str, int, int, int]
"""What encloses a definition: end byte, qualified, kind, ordinal, and its own first and last byte."""
_TOP: Final[_Enclosing] = (0, "", "", -1, -1, -1)
_Definition = tuple[int, int, int, str, "Node", int, bytes, bytes, "Node | None"]
"""First byte, the negative of its end, pattern; kind, node, where the name starts, name, owner, body. Sorted by the
first three, what encloses comes before what it holds."""
_EXPLICIT = frozenset({"python", "javascript", "typescript", "tsx"})
"""Languages in which a free name is a local, defined in the file, or imported by name."""
_GO_WORD = {"struct": "type ", "interface": "type ", "type": "type ", "constant": "const ", "variable": "var "}
_WITHOUT_BODY = frozenset({"field", "variable", "constant"})
_BODILESS = frozenset({"function", "method", "constructor"})
_BRACES = frozenset({"python", "ruby", "bash"})
_FUNCTIONS_IN_CLASS = {"function": "method"}
_SCRIPTS = frozenset({"javascript", "typescript", "tsx"})
_EXPORTS = re.compile(r"^(?:module\.)?exports(?=\.|$)|^this(?=\.|$)|^window(?=\.|$)")
_CLASSLIKE = frozenset({"class", "interface", "struct", "enum", "trait", "type"})
_CONSTRUCTORS = frozenset({"__init__", "initialize", "constructor", "__construct", "init"})
_CONSTANT = re.compile(r"_*[A-Z][A-Z0-9_]*")
_SIMPLE = re.compile(rb"[\w.$]+")
_CALLED = re.compile(rb"([\w.$:>-]+?)\s*\(.*\)", re.DOTALL)
_DOCSTRING = re.compile(rb"[rRuUbB]{0,2}(\"\"\"|'''|\"|')")
_STOP = re.compile(r"[.!?](?= [A-Z`*(\"'])")
_SPACE = re.compile(r"\s+")
_ANNOTATION = re.compile(rb"@[\w.:]+(?:\(.*\))?|#!?\[.*\]|\[.*\]")
_SEPARATORS = re.compile(rb"::|->|\?\.|!\.|!!\.|\\")


def extract(data: bytes, language: str) -> Extracted:
    """Everything the index keeps of one file. `data` is UTF-8 without a byte order mark."""
    parser, query = parser_and_query(language)
    from tree_sitter import QueryCursor

    root = parser.parse(data).root_node
    return _Extraction(data, language).run(QueryCursor(query).matches(root), root.has_error)


class _Extraction:
    def __init__(self, data: bytes, language: str) -> None:
        self.data = data
        self.language = language
        self.comment_marks = GRAMMARS[language].comment
        self.marks_above = (*self.comment_marks, b"@", b"#", b"[")
        self.out = Extracted()
        self.numbers: dict[bytes, int] = {}
        self.receivers: dict[bytes, int] = {b"": 0}
        self.out.strings.append("")
        self.variables: dict[bytes, int] = {}
        self.definitions: dict[int, _Definition] = {}
        self.decorators: list[tuple[int, int, int]] = []
        self._lines: list[bytes] | None = None

    # --- strings ---

    def number(self, raw: bytes) -> int:
        found = self.numbers.get(raw)
        if found is None:
            found = self.numbers[raw] = len(self.out.strings)
            self.out.strings.append(raw.decode("utf-8", "replace"))
        return found

    def receiver(self, raw: bytes) -> int:
        """Place of a receiver, brought to a form that resolution understands: `a.b`, `f()`, `a.f()`, or `?`."""
        found = self.receivers.get(raw)
        if found is None:
            found = self.receivers[raw] = self.number(normal_receiver(raw))
        return found

    @property
    def lines(self) -> list[bytes]:
        if self._lines is None:
            self._lines = self.data.split(b"\n")
        return self._lines

    # --- the pass over all matches ---

    def run(self, matches: list[tuple[int, dict[str, list[Node]]]], errors: bool) -> Extracted:
        data = self.data
        numbers, receivers = self.numbers.get, self.receivers.get  # looked into here: a call a name costs too much
        references: list[int] = []
        names: list[tuple[int, int, int]] = []
        imports: dict[int, Node] = {}
        add = references.extend
        for pattern, captured in matches:
            if (nodes := captured.get("call") or captured.get("ref")) is not None:
                node = nodes[0]
                line = node.start_point[0] + 1
                raw = data[node.start_byte : node.end_byte]
                name = numbers(raw)
                if name is None:
                    name = self.number(raw)
                place = 0
                before = captured.get("recv")
                if before is not None:
                    node = before[0]
                    raw = data[node.start_byte : node.end_byte]
                    found = receivers(raw)
                    place = (self.receiver(raw) if found is None else found) * 8
                if "call" in captured:
                    add((line, name, place + CALL))
                else:
                    names.append((line, name, place + NAME))
            elif "b.var" in captured or "b.field" in captured:
                self.bind(captured)
            elif "name" in captured:
                self.define(pattern, captured)
            elif "inherit" in captured:
                before = captured.get("recv")
                for node in captured["inherit"]:
                    self.inherit(references, node, before[0] if before else None)
            elif "dec" in captured:
                for node in captured["dec"]:
                    self.decorators.append((node.start_byte, node.end_byte, node.start_point[0] + 1))
            elif "import" in captured:
                node = captured["import"][0]
                imports[node.start_byte] = node
            elif "package" in captured and not self.out.package:
                node = captured["package"][0]
                self.out.package = data[node.start_byte : node.end_byte].decode("utf-8", "replace").replace("\\", ".")
        for node in imports.values():
            self.take_import(node)
        self.out.errors = errors
        self.finish_symbols(references)
        self.finish_names(names, references)
        if len(references) > 3 * MAX_REFERENCES:
            del references[3 * MAX_REFERENCES :]
            self.out.cut = True
        self.out.references = array("I", references)
        return self.out

    def bind(self, captured: dict[str, list[Node]]) -> None:
        data = self.data
        how, told = BY_CALL, captured.get("b.call")
        if told is None:
            how, told = BY_TYPE, captured.get("b.type")
        if told is None:
            how, told = BY_ALIAS, captured["b.id"]
        raw = data[told[0].start_byte : told[0].end_byte]
        if len(raw) > 200:
            return
        if how == BY_CALL:
            place = self.receivers.get(raw, 0)
            if not place:
                normal = normal_receiver(raw)
                if normal == b"?":
                    return
                place = self.receivers[raw] = self.number(normal)
            elif self.out.strings[place] == "?":
                return
        else:
            place = self.number(raw)
        expression = place * 4 + how
        field = captured.get("b.field")
        for variable in field or captured["b.var"]:
            raw = data[variable.start_byte : variable.end_byte]
            known = self.variables.get(raw)
            name = (self.variable(raw) if known is None else known) if len(raw) <= 100 else 0
            if name:
                line = variable.start_point[0] + 1
                if field:
                    self.out.bindings.extend(
                        (line, self.number(b"this." + self.out.strings[name].encode()), expression)
                    )
                self.out.bindings.extend((line, name, expression))

    def variable(self, raw: bytes) -> int:
        """Place of a variable's name, written like a receiver."""
        name = _SEPARATORS.sub(b".", raw).lstrip(b"$")
        if name.startswith(b"@"):
            name = b"self." + name.lstrip(b"@")
        made = self.variables[raw] = self.number(name)
        return made

    def define(self, pattern: int, captured: dict[str, list[Node]]) -> None:
        name_node = captured["name"][0]
        at = name_node.start_byte
        known = self.definitions.get(at)
        if known is not None and known[2] <= pattern:
            return
        name = self.data[at : name_node.end_byte]
        before = captured.get("recv")
        owner = self.data[before[0].start_byte : before[0].end_byte] if before else b""
        body = captured.get("body")
        for key, nodes in captured.items():
            if key.startswith("d.") or key == "scope":
                node = nodes[0]
                kind = key.removeprefix("d.")
                start, end = node.start_byte, node.end_byte
                self.definitions[at] = (start, -end, pattern, kind, node, at, name, owner, body[0] if body else None)
                return

    def inherit(self, references: list[int], node: Node, deriving: Node | None) -> None:
        raw = _SEPARATORS.sub(b".", self.data[node.start_byte : node.end_byte])
        before, _, name = raw.partition(b"<")[0].rpartition(b".")
        if deriving is not None:
            before = self.data[deriving.start_byte : deriving.end_byte].partition(b"<")[0]
        references.extend((node.start_point[0] + 1, self.number(name), self.receiver(before) * 8 + INHERIT))

    def take_import(self, node: Node) -> None:
        text = self.data[node.start_byte : min(node.end_byte, node.start_byte + 20_000)].decode("utf-8", "replace")
        line = node.start_point[0] + 1
        for found in PARSERS[self.language](text):
            self.out.imports.append((line, found.module, list(found.names), found.local))

    # --- after the pass ---

    def finish_symbols(self, references: list[int]) -> None:
        """Nest the definitions by their bytes, name them, and give each decorator to the name that follows it."""
        decorated = self.attach_decorators(references)
        found = sorted(self.definitions.values(), key=itemgetter(0, 1, 2))
        open_: list[_Enclosing] = []
        symbols = self.out.symbols
        python = self.language == "python"
        for start_byte, minus_end, _, kind, node, name_byte, raw_name, owner, body in found:
            end_byte = -minus_end
            while open_ and open_[-1][0] <= start_byte:
                open_.pop()
            name = self.clean_name(raw_name)
            owner_name = ""
            if owner:
                owner_name = clean_owner(owner)
                name = name.rpartition(".")[2]
                if self.language in _SCRIPTS:
                    owner_name = _EXPORTS.sub("", owner_name).removesuffix(".prototype").strip(".")
            elif "." in name:
                owner_name, _, name = name.rpartition(".")
            if not name:
                continue
            if open_ and open_[-1][4] == start_byte and open_[-1][5] == end_byte:
                open_.pop()  # several names in one declaration are siblings
            parent = open_[-1] if open_ else _TOP
            if kind == "field" and parent[2] == "constructor":  # a promoted parameter belongs to the class
                parent = open_[-2] if len(open_) > 1 else _TOP
            parent_line = symbols[parent[3]][3] if parent[3] >= 0 else 0
            owner_above = f"{parent[1]}.{owner_name}" if parent[1] and owner_name else parent[1] or owner_name
            qualified = f"{owner_above}.{name}" if owner_above else name
            if kind == "scope":
                open_.append((end_byte, qualified, "class", parent[3], -1, -1))
                continue
            marks = decorated.get(name_byte, ())
            kind = self.settle_kind(kind, name, parent, owner_name, marks)
            row, column = node.start_point
            signature_start, start_line = start_byte, row + 1
            if marks:
                signature_start, start_line = self.declaration_start(start_byte, row, name_byte, marks)
            signature, body_start = self.signature(node, end_byte, body, signature_start, kind)
            doc = self.docstring(body_start) if python and body_start and kind != "field" else ""
            if not doc and row + 1 != parent_line and self.may_be_comment(start_byte - column):
                doc = self.comment_above(row)
            end_row, end_column = node.end_point
            end_line = end_row + (1 if end_column or end_row == row else 0)
            symbols.append(
                (
                    name,
                    qualified,
                    kind,
                    start_line,
                    max(end_line, start_line),
                    parent[3],
                    signature,
                    doc,
                    tuple(text for _, _, text in marks) if marks else (),
                )
            )
            open_.append((end_byte, qualified, kind, len(symbols) - 1, start_byte, end_byte))

    def clean_name(self, raw: bytes) -> str:
        name = raw.decode("utf-8", "replace")
        if name.isidentifier():
            return name
        name = _SEPARATORS.sub(b".", raw).decode("utf-8", "replace")
        if "<" in name and not name.startswith("operator"):
            name = re.sub(r"<[^<>]*>", "", name)
        return name.strip("\"'`$ .:") if not name.startswith("operator") else "".join(name.split())

    def attach_decorators(self, references: list[int]) -> dict[int, list[tuple[int, int, str]]]:
        attached: dict[int, list[tuple[int, int, str]]] = {}
        if not self.decorators:
            return attached
        names = sorted(self.definitions)
        for start, end, line in sorted(set(self.decorators)):
            place = bisect_right(names, end - 1)
            raw = self.data[start:end].decode("utf-8", "replace")
            text = _SPACE.sub(" ", raw).strip("@#[]! ")[:SIGNATURE_CHARS]
            if place < len(names):
                attached.setdefault(names[place], []).append((start, end, text))
            called = re.match(r"[\w.:]+", text)
            if called:
                before, _, name = called[0].replace("::", ".").rpartition(".")
                kind = self.receiver(before.encode()) * 8 + DECORATOR
                references.extend((line, self.number(name.encode()), kind))
        return attached

    def settle_kind(
        self, kind: str, name: str, parent: _Enclosing, owner: str, marks: Sequence[tuple[int, int, str]]
    ) -> str:
        """What nesting, decorators and the name itself add to the kind that the query tells."""
        if kind == "function" and (parent[2] in _CLASSLIKE or (owner and self.language not in _SCRIPTS)):
            kind = "method"
        if kind == "method":
            if name in _CONSTRUCTORS and (name != "init" or self.language == "swift"):
                return "constructor"
            if self.language == "cpp" and name == (owner or parent[1]).rpartition(".")[2]:
                return "constructor"
            if (
                marks
                and self.language == "python"
                and any(
                    text in ("property", "cached_property") or text.endswith((".setter", ".cached_property"))
                    for _, _, text in marks
                )
            ):
                return "property"
        if kind in ("variable", "field") and len(name) > 1 and _CONSTANT.fullmatch(name):
            return "constant"
        if kind == "field" and not parent[2]:
            return "variable"
        return kind

    def declaration_start(
        self, start: int, row: int, name_byte: int, marks: Sequence[tuple[int, int, str]]
    ) -> tuple[int, int]:
        """First byte and line of the declaration itself, after decorators that stand inside the node."""
        inside = [end for mark, end, _ in marks if start <= mark and end <= name_byte]
        if not inside:
            return start, row + 1
        at = max(inside)
        gap = self.data[at:name_byte]
        at += len(gap) - len(gap.lstrip())
        return at, row + 1 + self.data.count(b"\n", start, at)

    def signature(self, node: Node, node_end: int, body: Node | None, start: int, kind: str) -> tuple[str, int]:
        """The declaration on one line, and where the body begins (0: no body)."""
        if body is None and kind not in _WITHOUT_BODY:
            body = node.child_by_field_name("body")
        data = self.data
        end = body.start_byte if body is not None else 0
        if end > start:
            raw = data[start : min(end, start + 1000)]
        else:
            raw = data[start : min(node_end, start + 400)]
            brace = raw.find(b"{") if self.language not in _BRACES else -1
            newline = raw.find(b"\n")
            cut = min((place for place in (brace, newline) if place > 0), default=len(raw))
            if body is None and newline > 0 and raw[:newline].rstrip()[-1:] in (b"(", b","):
                cut = brace if brace > 0 else len(raw)
            raw = raw[:cut]
            end = 0
        text = " ".join(raw.decode("utf-8", "replace").split())
        if "( " in text or " )" in text:
            text = text.replace("( ", "(").replace(", )", ")").replace(" )", ")")
        if self.language == "go" and not text.startswith(("type ", "const ", "var ")):
            text = _GO_WORD.get(kind, "") + text
        text = text.rstrip("{:;= ").removesuffix("=>").rstrip()[:SIGNATURE_CHARS]
        if not end and kind in _BODILESS and node.type in ("declaration", "field_declaration"):
            text = text[: SIGNATURE_CHARS - 1] + ";"  # a prototype, which `is_declaration` tells by this
        return text, end

    def docstring(self, start: int) -> str:
        match = _DOCSTRING.match(self.data, start)
        if match is None:
            return ""
        end = self.data.find(match[1], match.end(), match.end() + 3000)
        raw = self.data[match.end() : end if end >= 0 else match.end() + 1000]
        return first_sentence(raw.decode("utf-8", "replace"))

    def may_be_comment(self, line_start: int) -> bool:
        """Whether the line above is no plain one: mostly it is blank, or code."""
        data, end = self.data, max(line_start - 1, 0)
        above = data[data.rfind(b"\n", 0, end) + 1 : end].strip()
        return above.startswith(self.marks_above) or above.endswith(b"*/")

    def comment_above(self, row: int) -> str:
        """First sentence of the comment that ends right above this line (from 0), annotations in between ignored."""
        lines, marks = self.lines, self.comment_marks
        comment: list[bytes] = []
        ends_block = False
        for above in range(row - 1, max(-1, row - 60), -1):
            line = lines[above].strip()
            if ends_block or (line.startswith(marks) and not line.startswith((b"#!", b"#["))):
                comment.append(line)
                if line.startswith(b"/*"):
                    break
            elif line.endswith(b"*/") and b"/*" not in line and not comment:
                ends_block = True
                comment.append(line)
            elif comment or not _ANNOTATION.fullmatch(line):
                break
        if not comment:
            return ""
        kept: list[str] = []
        for line in reversed(comment):
            text = line.decode("utf-8", "replace").strip("/*#! \t")
            if text.startswith(("@", "<summary>", "</summary>", "SPDX-", "eslint", "noqa", "nolint")):
                if kept and text.startswith("@"):
                    break
                text = text.removeprefix("<summary>").removesuffix("</summary>") if "summary>" in text else ""
            if not text.strip("-=~"):
                if kept:
                    break
                continue
            kept.append(text)
        return first_sentence("\n".join(kept))

    def finish_names(self, names: list[tuple[int, int, int]], references: list[int]) -> None:
        """Keep each name once a line; in languages with explicit imports, only names that can mean a definition."""
        strings = self.out.strings
        if self.language in _EXPLICIT:
            known = {row[0] for row in self.out.symbols if row[5] < 0}
            for _, _, imported, local in self.out.imports:
                known.update(alias for _, alias in imported)
                known.add(local.partition(".")[0])
            worth: dict[int, bool] = {}
            seen: set[tuple[int, int, int]] = set()
            for item in names:
                number, place = item[1], item[2]
                keep = worth.get(number)
                if keep is None:
                    text = strings[number]
                    keep = worth[number] = text in known or (text[:1].isupper() and len(text) > 1) or text == "__name__"
                if not keep and place >> 3:
                    before = strings[place >> 3].partition(".")[0]
                    keep = before in known or before in ("self", "cls", "this")
                if keep and item not in seen:
                    seen.add(item)
                    references.extend(item)
        else:
            for item in dict.fromkeys(names):
                if not strings[item[1]][:1].isdigit():
                    references.extend(item)


def normal_receiver(raw: bytes) -> bytes:
    """`self.request_context(environ)` -> `self.request_context()`; what is more involved becomes `?`."""
    raw = raw.strip()
    if raw.startswith(b"@"):
        raw = b"self." + raw.lstrip(b"@")
    if _SIMPLE.fullmatch(raw):
        return raw.lstrip(b"$") if len(raw) <= 120 else b"?"
    if len(raw) > 400:
        return b"?"
    if raw[:1] == b"(" and raw[-1:] == b")" and raw.count(b"(") == 1:
        return normal_receiver(raw[1:-1].lstrip(b"*& "))
    raw = _SEPARATORS.sub(b".", raw).replace(b"$", b"").lstrip(b"&*@")
    if raw.startswith(b"new "):
        raw = raw[4:].lstrip()
    if _SIMPLE.fullmatch(raw):
        return raw
    called = _CALLED.fullmatch(raw)
    if called and _balanced_tail(raw, called.end(1)):
        return called[1].strip() + b"()"
    generic = re.fullmatch(rb"([\w.]+)<[^()]*>", raw)
    return generic[1] if generic else b"?"


def _balanced_tail(raw: bytes, start: int) -> bool:
    """Whether the parenthesis that opens first after `start` closes at the very end."""
    depth = 0
    for place in range(start, len(raw)):
        char = raw[place]
        if char == 40:
            depth += 1
        elif char == 41:
            depth -= 1
            if depth == 0:
                return place == len(raw) - 1
    return False


def clean_owner(raw: bytes) -> str:
    """`(c *Context[T])` -> `Context`; `ns::Class<T>` -> `ns.Class`."""
    text = _SEPARATORS.sub(b".", raw).decode("utf-8", "replace").strip("()*& ")
    text = text.rpartition(" ")[2].lstrip("*&")
    for mark in "<[":
        text = text.partition(mark)[0]
    return text.strip(". ")


def first_sentence(text: str) -> str:
    """First sentence of the first paragraph, white space folded, at most DOC_CHARS characters."""
    paragraph = text.strip().partition("\n\n")[0][: 4 * DOC_CHARS]
    folded = " ".join(paragraph.split())
    stop = _STOP.search(folded, 0, DOC_CHARS + 2)
    end = min(stop.end(), DOC_CHARS) if stop else DOC_CHARS
    return folded[:end].partition("。")[0].strip()
