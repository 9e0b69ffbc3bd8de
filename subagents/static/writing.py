"""Writing an answer: sentences tied to findings, paths shortened after their first mention, tables, diagrams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from subagents.engine import Answer, Statement
from subagents.static.drafts import listing
from subagents.static.markdown import cell, code, label, visible


class Names:
    """First mention in full, later ones short where no other path of the snapshot could be meant."""

    def __init__(self, paths: Iterable[str] = (), every: Iterable[str] = ()) -> None:
        self._seen_paths: set[str] = set()
        self._short = _shortest(paths, every)
        self._simple: dict[str, set[str]] = {}
        self._seen_symbols: set[str] = set()

    def register(self, symbols: Iterable[str]) -> None:
        for symbol in symbols:
            self._simple.setdefault(symbol.rpartition(".")[2], set()).add(symbol)

    def at(self, path: str, line: int, end: int = 0) -> str:
        """`src/flask/app.py:1566` at first, `app.py:1566` later."""
        shown = self._short.get(path, path) if path in self._seen_paths else path
        self._seen_paths.add(path)
        return visible(f"{shown}:{line}" + (f"-{end}" if end > line else ""))

    def full(self, path: str, line: int, end: int = 0) -> str:
        return visible(f"{path}:{line}" + (f"-{end}" if end > line else ""))

    def symbol(self, qualified: str) -> str:
        simple = qualified.rpartition(".")[2]
        if qualified in self._seen_symbols and len(self._simple.get(simple, {qualified})) <= 1:
            return code(simple)
        self._seen_symbols.add(qualified)
        return code(qualified)


def _shortest(paths: Iterable[str], every: Iterable[str]) -> dict[str, str]:
    """The bare file name for each path that alone has it among these and `every`; the others stay whole."""
    wanted = set(paths)
    counts = Counter(path.rpartition("/")[2] for path in wanted.union(every))
    return {path: name if counts[name := path.rpartition("/")[2]] == 1 else path for path in wanted}


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrow:
    source: str
    target: str
    text: str = ""
    dashed: bool = False


def diagram(arrows: Sequence[Arrow], rounded: frozenset[str] = frozenset(), limit: int = 30) -> str:
    """A Mermaid flowchart. Nodes are numbered, so that no name of a repository is ever syntax."""
    numbers: dict[str, int] = {}
    rows = ["```mermaid", "flowchart LR"]

    def node(name: str) -> str:
        if name in numbers:
            return f"n{numbers[name]}"
        numbers[name] = len(numbers)
        opening, closing = ('(("', '"))') if name in rounded else ('["', '"]')
        return f"n{numbers[name]}{opening}{label(name)}{closing}"

    for arrow in list(dict.fromkeys(arrows))[:limit]:
        line = "-.->" if arrow.dashed else "-->"
        text = f'|"{label(arrow.text, 40)}"|' if arrow.text else ""
        rows.append(f"  {node(arrow.source)} {line}{text} {node(arrow.target)}")
    return "\n".join([*rows, "```"])


class Writer:
    """Collects Markdown blocks and the statements in them."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self._blocks: list[str] = []
        self._statements: list[Statement] = []
        self._sentences: list[str] = []

    def say(self, sentence: str, findings: Iterable[str]) -> None:
        """One sentence of the current paragraph, resting on these findings."""
        ids = tuple(dict.fromkeys(findings))
        self._statements.append(Statement(text=sentence, findings=ids))
        self._sentences.append(sentence)

    def end_paragraph(self, title: str = "") -> None:
        if self._sentences:
            self._blocks.append((f"**{title}.** " if title else "") + " ".join(self._sentences))
            self._sentences = []

    def bullets(self, title: str, rows: Sequence[tuple[str, Sequence[str]]]) -> None:
        """A titled list, each row a statement."""
        if not rows:
            return
        for text, ids in rows:
            self._statements.append(Statement(text=text, findings=tuple(dict.fromkeys(ids))))
        lines = "\n".join(f"- {text}" for text, _ in rows)
        self._blocks.append(f"**{title}.**\n\n{lines}")

    def table(self, head: Sequence[str], rows: Sequence[tuple[Sequence[str], Sequence[str]]]) -> None:
        """Rows of cells (Markdown) with the findings each rests on."""
        if not rows:
            return
        text = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
        for cells, ids in rows:
            text.append(f"| {' | '.join(cell(c) for c in cells)} |")
            self._statements.append(
                Statement(text="; ".join(c for c in cells if c), findings=tuple(dict.fromkeys(ids)))
            )
        self._blocks.append("\n".join(text))

    def block(self, markdown: str) -> None:
        if markdown:
            self._blocks.append(markdown)

    def answer(self, *, found: bool) -> Answer:
        self.end_paragraph()
        return Answer(markdown="\n\n".join(self._blocks) + "\n", statements=tuple(self._statements), found=found)


def codes(names: Sequence[str], limit: int = 4) -> str:
    """`a`, `b` and 3 more."""
    shown = [code(name) for name in names[:limit]]
    if len(names) > limit:
        shown.append(f"{len(names) - limit} more")
    return listing(shown)
