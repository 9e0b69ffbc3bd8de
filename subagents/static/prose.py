"""What the documentation says: paragraphs of prose files, ranked against the question, quoted with their lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from subagents.codebase.types import CodeIndex, Finder
from subagents.static.deeds import deed_of
from subagents.static.drafts import Draft, where
from subagents.static.grep import Grep
from subagents.static.question import Question
from subagents.static.relevance import Relevance, name_words, term_match
from subagents.static.roles import is_changelog, is_prose, path_role
from subagents.static.source import Sources

MAX_FILES = 24
MAX_QUOTES = 4
MAX_LINES_A_FILE = 6000
QUOTE_LINES = 5

MAX_ROWS = 200
_LINK = re.compile(r"\[[^\]\n]*\]\([^)\n]*\)|\\\[[^\]]*\\\]\([^)]*\)")
_TAG = re.compile(r"</?\w+[^>]*>|\{[%{]")
_BEGINS = re.compile(r"^\s*([-*+•]|\d{1,2}[.)])\s")
_UNDERLINE = re.compile(r"^\s*([=\-~^\"'`#*+.])\1{2,}\s*$")
_HEADING = re.compile(r"^(?:#{1,6}|={1,6}(?= \S))\s+(.*?)\s*=*$")
_ITEM = re.compile(r"(?:^|\s)(?:#|\d{1,2})[.)]\s+(?=[A-Z`:])")
_MARKUP = re.compile(r"^\s*(\.\. |:\w+:|```|<|\||\[!\[|!\[|---|\+--)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraph:
    start: int
    end: int
    heading: str
    text: str


def paragraphs(lines: Sequence[str]) -> Iterator[Paragraph]:
    """Blocks of prose between blank lines, each with the heading above it; markup and code blocks left out."""
    heading = ""
    start = 0
    block: list[str] = []
    fenced = False
    for number, row in enumerate([*lines[:MAX_LINES_A_FILE], ""], 1):
        if row.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
            block = []
            continue
        if fenced:
            continue
        marked = _HEADING.match(row)
        if marked:
            heading = marked.group(1).strip()
            block = []
            continue
        if _UNDERLINE.match(row) and len(block) == 1:
            heading = block[0].strip()
            block = []
            continue
        if row.strip() and not (not block and _MARKUP.match(row)):
            if not block:
                start = number
            block.append(row.strip())
            continue
        if block:
            text = " ".join(block)
            if len(text) >= 40 and not _UNDERLINE.match(block[0]) and re.search(r"[A-Za-z]{3,} [A-Za-z]{2,}", text):
                yield Paragraph(start=start, end=number - 1, heading=heading, text=text)
            block = []


class _Subject:
    """Whether a quote is about what is asked for: its name, or two of its words close together."""

    def __init__(self, question: Question, own: frozenset[str]) -> None:
        deed = deed_of(question)
        verbs = (deed.asked, *deed.particles) if deed else ()
        names = dict.fromkeys(name.rpartition(".")[2] for name in question.identifiers)
        self._names = [re.compile(_as_code(name)) for name in names]
        self._by_name = bool(names) and question.kind in ("impact", "dependents")
        nouns = [t for t in question.strong_terms if t not in own and t not in verbs]
        self._terms = nouns or list(question.strong_terms)

    def is_told(self, quote: str, heading: str, pattern: re.Pattern[str] | None) -> bool:
        if len(_LINK.findall(quote)) >= 3 and len(_LINK.sub("", quote)) < len(quote) / 2:
            return False  # a table of contents
        if len(_TAG.findall(quote)) >= 3:
            return False  # a template
        if any(name.search(quote) for name in self._names):
            return True
        if self._by_name:
            return False
        here, above = set(name_words(quote)), set(name_words(heading))
        inside = [t for t in self._terms if any(term_match(t, word) >= 0.75 for word in here)]
        either = [t for t in self._terms if t in inside or any(term_match(t, word) >= 0.75 for word in above)]
        named = 1 if pattern is not None and pattern.search(quote) else 0
        return bool(inside or named) and len(either) + named >= min(2, len(self._terms))


def _as_code(name: str) -> str:
    """A name that is an ordinary word too counts only where it is written as code."""
    quoted = re.escape(name)
    if re.search(r"_|[a-z][A-Z]|\d", name):
        return rf"(?<!\w){quoted}(?!\w)"
    return rf"[.`]{quoted}(?!\w)|(?<!\w){quoted}\("


def _best_rows(rows: Sequence[str], relevance: Relevance, pattern: re.Pattern[str] | None) -> tuple[int, int]:
    """The few lines of a long paragraph that say most, from the start of an item or sentence where there is one."""
    if len(rows) <= QUOTE_LINES:
        return 0, len(rows)
    best, at = -1.0, 0
    for first in range(min(len(rows), MAX_ROWS) - QUOTE_LINES + 1):
        text = " ".join(rows[first : first + QUOTE_LINES])
        value = relevance.in_text(text) + (0.25 * min(3, len(set(pattern.findall(text)))) if pattern else 0.0)
        begins = first == 0 or _BEGINS.match(rows[first]) or rows[first - 1].rstrip().endswith((".", ":", "!"))
        if value + (0.12 if begins else 0.0) > best + 0.001:
            best, at = value + (0.12 if begins else 0.0), first
    return at, at + QUOTE_LINES


def doc_drafts(
    question: Question,
    index: CodeIndex,
    finder: Finder,
    sources: Sources,
    relevance: Relevance,
    names: Sequence[str] = (),
    limit: int = MAX_QUOTES,
    mentioning: Sequence[str] = (),
) -> Iterator[Draft]:
    """The best paragraphs. `names` are symbols found in code: a paragraph that mentions them explains them.

    `mentioning` are further files to read, known to mention some of the names.
    """
    telling = telling_names(names)
    scored: list[tuple[float, str, int, Paragraph]] = []
    pattern = re.compile(rf"\b({'|'.join(re.escape(name) for name in telling)})\b") if telling else None
    ranked = candidates(question, index, finder, telling)
    for path in dict.fromkeys((*mentioning[:MAX_FILES], *ranked)):
        text = sources.text(path)
        if text is None:
            continue
        weight = 0.5 if is_changelog(path) else 1.0
        topic = 0.15 * min(1.0, relevance.in_text(path.rpartition(".")[0]))
        blocks = list(paragraphs(text.lines))
        told: dict[str, set[str]] = {}
        first: dict[str, int] = {}
        for paragraph in blocks:
            first.setdefault(paragraph.heading, paragraph.start)
            if pattern is not None:
                told.setdefault(paragraph.heading, set()).update(pattern.findall(paragraph.text))
        for paragraph in blocks:
            mentioned = len(set(pattern.findall(paragraph.text))) if pattern is not None else 0
            around = len(told.get(paragraph.heading, ()))
            score = (
                relevance.in_text(paragraph.text)
                + 0.35 * relevance.in_text(paragraph.heading)
                + 0.25 * min(3, mentioned)
            )
            if question.kind == "how" and len(_ITEM.findall(paragraph.text)) >= 4:
                score += 0.45  # an ordered list tells steps
            score += topic + (
                0.2 * min(6, around) if first[paragraph.heading] == paragraph.start and around > 2 else 0.0
            )
            score *= weight * min(1.0, 0.55 + len(paragraph.text) / 400)
            if paragraph.text.count("|") > 6:
                score *= 0.5
            scored.append((-score, path, paragraph.start, paragraph))
    subject = _Subject(question, own_words(index, sources))
    per_file: dict[str, int] = {}
    kept = 0
    for negative, path, _, paragraph in sorted(scored, key=lambda item: item[:3]):
        if kept >= limit or -negative < 0.55:
            break
        if per_file.get(path, 0) >= 2:
            continue
        text = sources.text(path)
        assert text is not None
        rows = text.lines[paragraph.start - 1 : paragraph.end]
        steps = question.kind == "how" and len(_ITEM.findall(paragraph.text)) >= 4
        first_row, last_row = (0, min(len(rows), QUOTE_LINES)) if steps else _best_rows(rows, relevance, pattern)
        start, end = paragraph.start + first_row, paragraph.start + last_row - 1
        quote = " ".join(row.strip() for row in rows[first_row:last_row])
        if not subject.is_told(paragraph.text if steps else quote, paragraph.heading, pattern):
            continue
        per_file[path] = per_file.get(path, 0) + 1
        kept += 1
        about = f" (under “{paragraph.heading}”)" if paragraph.heading else ""
        yield Draft(
            claim=f"{where(path, start, end)}{about} says: “{quote[:300]}”",
            kind="behaviour",
            citations=((path, start, end),),
            relevance=round(min(0.75, 0.35 + 0.2 * -negative), 2),
            data={
                "step": "doc",
                "path": path,
                "line": start,
                "end": end,
                "heading": paragraph.heading[:120],
                "quote": quote[:420],
                "cut": paragraph.end > end or len(quote) > 420,
                "score": round(-negative, 3),
            },
        )


def own_words(index: CodeIndex, sources: Sources) -> frozenset[str]:
    """What the project calls itself: words of its README that come again and again say nothing about a part of it."""
    counted: dict[str, int] = {}
    readme = next((p for p in index.paths() if "/" not in p and p.lower().startswith("readme")), "")
    for _, row in sources.lines(readme, 1, 400) if readme else ():
        for word in name_words(row):
            counted[word] = counted.get(word, 0) + 1
    return frozenset(word for word, count in counted.items() if count >= 8)


def telling_names(names: Sequence[str]) -> list[str]:
    """Simple names that are no common words, so that a text holding one speaks of the code."""
    simple = dict.fromkeys(name.rpartition(".")[2] for name in names)
    return [name for name in simple if len(name) > 4 and ("_" in name.strip("_") or re.search(r"[a-z][A-Z]", name))]


def mentions(names: Sequence[str], grep: Grep, paths: Sequence[str]) -> list[str]:
    """Files of prose by how many of these names they mention, most first."""
    telling = telling_names(names)
    if not telling:
        return []
    found: dict[str, set[str]] = {}
    for match, name in grep.names(telling, paths):
        found.setdefault(match.path, set()).add(name)
    return sorted(found, key=lambda path: (-len(found[path]), path))


def candidates(question: Question, index: CodeIndex, finder: Finder, names: Sequence[str]) -> list[str]:
    """Prose files worth reading: ranked hits first, then those whose path speaks of the subject, then the README."""
    found: dict[str, None] = {}
    for query in (question.search_text, " ".join(names[:8])):
        if query.strip():
            for hit in finder.find(query, limit=80):
                if is_prose(hit.path) and path_role(hit.path) not in ("vendored", "test"):
                    found[hit.path] = None
    strong = question.strong_terms
    for path in index.paths():
        if (
            is_prose(path)
            and path_role(path) not in ("vendored", "test")
            and any(term in path.lower() for term in strong)
        ):
            found[path] = None
    for path in index.paths():
        if "/" not in path and path.lower().startswith("readme"):
            found[path] = None
    ordered = list(found)
    return [p for p in ordered if not is_changelog(p)][:MAX_FILES] + [p for p in ordered if is_changelog(p)][:2]
