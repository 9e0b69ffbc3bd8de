"""Where X is: definitions ranked for the question, and the configuration that speaks of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from subagents.codebase.types import CodeIndex, Finder, Symbol
from subagents.static.callgraph import FUNCTION_KINDS, TYPE_KINDS, Key, is_declaration, key_of
from subagents.static.drafts import Draft, place, symbol_data, where
from subagents.static.question import Question
from subagents.static.relevance import Relevance, name_words, term_match
from subagents.static.roles import path_role
from subagents.static.source import Sources, shorten
from subagents.static.targets import Target
from subagents.static.wordlists import words

_LITERAL = re.compile(r"\"[^\"]*\"|'[^']*'")
_TELLING_PEOPLE = re.compile(r"\b\w*(print|log|warn|error|diagnos|raise|throw|panic|die|usage|assert|message)\w*", re.I)
"""A line with such a word tells somebody about what is done; what it quotes is not done there."""
MAX_PLACES = 6
MAX_SETTINGS = 4
_ADDING = words("add register insert append install attach mount bind subscribe include put")
VALUE_KINDS = frozenset({"constant", "variable", "field", "property"})


def ranked_places(
    question: Question,
    index: CodeIndex,
    finder: Finder,
    sources: Sources,
    relevance: Relevance,
    targets: Sequence[Target],
) -> list[tuple[float, Symbol, int]]:
    """(score, definition, telling line inside it), best first; only such as hold most of what was asked for."""
    pool: dict[Key, Symbol] = {}
    named: set[Key] = set()
    for target in targets:
        if target.symbol is not None:
            pool[key_of(target.symbol)] = target.symbol
            if target.exact:
                named.add(key_of(target.symbol))
    for rank, hit in enumerate(finder.find_symbols(question.search_text, limit=60)):
        if rank < 60:
            pool.setdefault(key_of(hit.symbol), hit.symbol)
    for word in joined_names(question):
        for symbol in index.definitions(word, limit=6):
            pool.setdefault(key_of(symbol), symbol)
    for symbol in _named_alike(question, index, finder):
        pool.setdefault(key_of(symbol), symbol)
    tests_wanted = question.aspect == "tested"
    matches = {}
    for key, symbol in pool.items():
        role = path_role(symbol.path)
        if is_declaration(symbol) or role == "vendored" or (role == "test" and not tests_wanted and key not in named):
            continue
        names = sources.identifiers(symbol.path, symbol.start + 1, min(symbol.end, symbol.start + 200))
        matches[key] = relevance.matches(symbol, names if symbol.kind in FUNCTION_KINDS else ())
    relevance.weigh(list(matches.values()))
    found = []
    for rank, (key, match) in enumerate(matches.items()):
        symbol = pool[key]
        line, worth = telling_line(question, symbol, sources, relevance)
        score = (relevance.value(replace(match, pairs=min(1, match.pairs))) + 0.3 * worth) * relevance.coverage(match)
        if symbol.end - symbol.start > 300 and max(relevance.own_name(symbol), default=0.0) < 0.6:
            score *= 0.5  # hundreds of lines mention much and are about little of it
        if key not in named:
            score += 0.3 * _module_says(symbol, question, sources, relevance) + 0.35 * _file_is_about(symbol, question)
            if symbol.name.startswith("_"):
                score *= 0.75  # a helper of something that would say more
        score += 1.5 if key in named else 0.0
        if question.aspect == "configured" and (symbol.kind in VALUE_KINDS or re.search(r"[A-Z]{3}", symbol.name)):
            score += 0.25
        if question.aspect == "registered" and set(name_words(symbol.name)) & _ADDING:
            score += 0.5
        if symbol.kind in TYPE_KINDS:
            score -= 0.1
        if path_role(symbol.path) in ("example", "docs", "config"):
            score -= 0.3
        score -= 0.004 * rank
        found.append((score, symbol, line))
    found.sort(key=lambda item: (-item[0], item[1].path, item[1].start))
    return found[: MAX_PLACES * 2]


def _module_says(symbol: Symbol, question: Question, sources: Sources, relevance: Relevance) -> float:
    """How much of the question the head of a file speaks of: what all its definitions are there for (0 to 1)."""
    text = sources.text(symbol.path)
    head = " ".join(text.lines[:8]) if text else ""
    held = set(name_words(head)) | set(name_words(symbol.path))
    said = {t: w * max((term_match(t, word) for word in held), default=0.0) for t, w in relevance.weights.items()}
    return sum(said.values()) / (sum(relevance.weights.values()) or 1.0)


def _file_is_about(symbol: Symbol, question: Question) -> bool:
    """Whether the name of the file itself says two words or more of what is asked for, and nothing is left."""
    held = name_words(symbol.path.rpartition("/")[2].partition(".")[0])
    said = [t for t in question.strong_terms if any(term_match(t, word) >= 0.75 for word in held)]
    return len(said) >= 2 and len(said) >= len(held)


def _named_alike(question: Question, index: CodeIndex, finder: Finder) -> Iterator[Symbol]:
    """Definitions of the best files whose own name holds a word of the question: constants are not ranked by bodies."""
    for file in finder.find(question.search_text, limit=8, include_tests=False):
        given = 0
        for symbol in index.symbols(file.path):
            own = name_words(symbol.name)
            if given < 12 and any(term_match(term, word) >= 0.85 for term in question.strong_terms for word in own):
                given += 1
                yield symbol


def joined_names(question: Question) -> Iterator[str]:
    """How neighbouring words could be spelled as one name: query_set, QuerySet, querySet, queryset."""
    for first, second in question.pairs[:4]:
        yield f"{first}_{second}"
        yield first.capitalize() + second.capitalize()
        yield first + second.capitalize()
        yield first.capitalize() + second
        yield f"{first}_{second}".upper()


def telling_line(question: Question, symbol: Symbol, sources: Sources, relevance: Relevance) -> tuple[int, float]:
    """The line of a body that says most about the question, and how much it adds (0 to 1)."""
    if symbol.kind not in FUNCTION_KINDS:
        return symbol.start, 0.0
    best, at = 0.0, symbol.start
    for number, row in sources.code(symbol, limit=250):
        held = name_words(_LITERAL.sub("", row) if _TELLING_PEOPLE.search(row) else row)
        hits = sum(1 for term in question.strong_terms if any(term_match(term, word) >= 0.85 for word in held))
        if hits >= 2:
            value = relevance.in_text(row)
            if value > best + 0.05:
                best, at = value, number
    return at, min(1.0, best)


def definition_drafts(
    question: Question, ranked: Sequence[tuple[float, Symbol, int]], sources: Sources, limit: int = MAX_PLACES
) -> Iterator[Draft]:
    """Those near the best; a class and its own methods do not both take a place unless both were named."""
    kept: list[Symbol] = []
    best = ranked[0][0] if ranked else 0.0
    for score, symbol, line in ranked:
        if len(kept) >= limit or score < 0.55 * best:
            return
        if any(k.path == symbol.path and k.start < symbol.start <= k.end and k.kind in FUNCTION_KINDS for k in kept):
            continue
        order = len(kept)
        kept.append(symbol)
        row = sources.line(symbol.path, line).strip()
        citations = [place(symbol)]
        claim = f"`{symbol.qualified}` ({symbol.kind}) is defined at {where(symbol.path, symbol.start, symbol.end)}"
        if line != symbol.start and row:
            citations.append((symbol.path, line, line))
            claim += f"; {where(symbol.path, line)} reads `{shorten(row, 100)}`"
        yield Draft(
            claim=claim + ".",
            kind="structure",
            citations=tuple(citations),
            symbols=(symbol.qualified,),
            confidence=round(min(0.95, 0.4 + 0.35 * min(1.5, score)), 2),
            relevance=round(max(0.3, 0.95 - 0.08 * order), 2),
            data={
                "step": "definition",
                "order": order,
                "score": round(score, 3),
                "signature": symbol.signature[:200],
                "telling_line": line,
                "telling": shorten(row, 160) if line != symbol.start else "",
                **symbol_data(symbol),
            },
        )


def setting_drafts(
    question: Question, index: CodeIndex, finder: Finder, sources: Sources, relevance: Relevance
) -> Iterator[Draft]:
    """Lines of configuration files, and constants or defaults in code, that speak of the subject."""
    terms = [t for t in question.strong_terms if t not in ("configured", "set", "settings")] or list(question.terms)
    if not terms:
        return
    scored: list[tuple[float, str, int, str, str]] = []
    for path in _config_files(question, index, finder):
        for number, row in sources.lines(path, 1, 3000):
            if len(row) > 400 or not row.strip():
                continue
            value = _covers(terms, row)
            if value >= 0.99:
                scored.append((-value - 0.2 * (len(terms) > 1), path, number, row.strip(), ""))
    names = {symbol.name: symbol for symbol in _value_symbols(question, index, finder)}
    for symbol in names.values():
        value = _covers(terms, symbol.name)
        if value >= 0.5:
            row = sources.line(symbol.path, symbol.start).strip()
            scored.append((-value - 0.3, symbol.path, symbol.start, row, symbol.qualified))
    per_file: dict[str, int] = {}
    kept = 0
    for _, path, number, row, name in sorted(scored):
        if per_file.get(path, 0) >= 2 or kept >= MAX_SETTINGS:
            continue
        per_file[path] = per_file.get(path, 0) + 1
        kept += 1
        what = f"`{name}` is set" if name else "a setting stands"
        yield Draft(
            claim=f"{what} at {where(path, number)}: `{shorten(row, 120)}`.",
            kind="decision",
            citations=((path, number, number),),
            symbols=(name,) if name else (),
            relevance=0.6 if question.aspect == "configured" else 0.35,
            data={"step": "setting", "path": path, "line": number, "text": shorten(row, 160), "symbol": name},
        )


def _config_files(question: Question, index: CodeIndex, finder: Finder) -> list[str]:
    found: dict[str, None] = {}
    for hit in finder.find(question.search_text, limit=60):
        if path_role(hit.path) == "config" and not hit.path.endswith((".lock", "lock.json", ".sum")):
            found[hit.path] = None
    if question.aspect == "configured":
        for path in index.paths():
            if (
                path_role(path) == "config"
                and path.count("/") <= 1
                and not path.endswith((".lock", "lock.json", ".sum"))
            ):
                found[path] = None
    return list(found)[:15]


def _value_symbols(question: Question, index: CodeIndex, finder: Finder) -> Iterator[Symbol]:
    for hit in finder.find_symbols(question.search_text, limit=60):
        if hit.symbol.kind in VALUE_KINDS and path_role(hit.symbol.path) == "code":
            yield hit.symbol


def _covers(terms: Sequence[str], text: str) -> float:
    held = name_words(text)
    return sum(max((term_match(term, word) for word in held), default=0.0) for term in terms) / len(terms)


def member_drafts(symbol: Symbol, index: CodeIndex, relevance: Relevance) -> Iterator[Draft]:
    """What a class offers: its public methods, most used or documented first, as one finding."""
    members = [
        s
        for s in index.symbols(symbol.path)
        if s.qualified.rpartition(".")[0] == symbol.qualified
        and symbol.start <= s.start <= symbol.end
        and s.kind in FUNCTION_KINDS
        and (not s.name.startswith("_") or s.name in ("__init__", "__call__", "__iter__", "__enter__"))
    ]
    if not members:
        return
    shown = sorted(
        members, key=lambda s: (-(relevance.in_text(f"{s.name} {s.doc}") + (0.2 if s.doc else 0.0)), s.start)
    )[:6]
    shown.sort(key=lambda s: s.start)
    yield Draft(
        claim=f"`{symbol.qualified}` offers {len(members)} public methods, among them "
        + ", ".join(f"`{s.name}` ({where(s.path, s.start)})" for s in shown)
        + ".",
        kind="structure",
        citations=tuple(place(s) for s in shown),
        symbols=(symbol.qualified,),
        relevance=0.7,
        data={
            "step": "members",
            "target": symbol.qualified,
            "count": len(members),
            "shown": [{"symbol": s.qualified, "path": s.path, "line": s.start, "doc": s.doc[:120]} for s in shown],
        },
    )
