"""Where X is: definitions ranked for the question, and the configuration that speaks of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from subagents.codebase.types import CodeIndex, Finder, Symbol
from subagents.static.callgraph import FUNCTION_KINDS, TYPE_KINDS, Key, is_declaration, key_of
from subagents.static.deeds import Deed, deed_of, initials, names_it_all, object_share
from subagents.static.defaults import declared_at, defaults_of
from subagents.static.drafts import Draft, place, symbol_data, where
from subagents.static.grep import Grep
from subagents.static.prose import own_words
from subagents.static.question import Question
from subagents.static.relevance import Matches, Relevance, name_words, term_match
from subagents.static.roles import path_role
from subagents.static.source import Sources, shorten
from subagents.static.targets import Target
from subagents.static.wordlists import words

_LITERAL = re.compile(r"\"[^\"]*\"|'[^']*'")
_TELLING_PEOPLE = re.compile(r"\b\w*(print|log|warn|error|diagnos|raise|throw|panic|die|usage|assert|message)\w*", re.I)
"""A line with such a word tells somebody about what is done; what it quotes is not done there."""
_DANGLING = re.compile(r"^\s*([\"')\]}.,+&|]|[fbr]\")")
_SECTION = re.compile(r"^\s*(?:\[+([\w.\"'-]+)\]+|(\w[\w.-]*):)\s*(?:#.*)?$")
_KEY = re.compile(r"""^\s*(?:[-{]\s*)?["']?(?P<key>[\w.-]+)["']?\s*(?::|=)\s*\S""")
_TOOLS = words("ci workflow workflows github gitlab travis lint linter linting pipeline pipelines build coverage")
_TOOLING = re.compile(
    r"(^|/)\.[^/]+(/|$)|(^|/)(tox|appveyor|azure-pipelines|codecov|renovate|mkdocs|netlify|cirrus|pytest|mypy|ruff)"
    r"\.[a-z]+$",
    re.IGNORECASE,
)
_CONDITION = re.compile(r"\s*(?:\}\s*)?(?:if|elif|else if|elsif|unless|while|assert|guard|require|when|until)\b")
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
    deed = deed_of(question) if question.aspect != "configured" else None
    for symbol in _doing(deed, index, finder) if deed else ():
        pool.setdefault(key_of(symbol), symbol)
    tests_wanted = question.aspect == "tested"
    matches = {}
    for key, symbol in pool.items():
        role = path_role(symbol.path)
        if is_declaration(symbol) or role == "vendored" or (role == "test" and not tests_wanted and key not in named):
            continue
        names = sources.identifiers(symbol.path, symbol.start + 1, min(symbol.end, symbol.start + 200))
        match = relevance.matches(symbol, names if symbol.kind in FUNCTION_KINDS else ())
        matches[key] = _with_deed(match, deed, symbol) if deed else match
    relevance.weigh(list(matches.values()))
    found = []
    for rank, (key, match) in enumerate(matches.items()):
        symbol = pool[key]
        line, worth = telling_line(question, symbol, sources, relevance)
        if deed is not None and deed.checks and _decides(deed, sources.line(symbol.path, line)):
            match = replace(match, by_term={**match.by_term, deed.asked: max(0.8, match.by_term.get(deed.asked, 0.0))})
        worth = 0.0 if deed is not None and deed.runs else worth  # what is set going is told by its callers
        score = (relevance.value(replace(match, pairs=min(1, match.pairs))) + 0.3 * worth) * relevance.coverage(match)
        if symbol.end - symbol.start > 300 and max(relevance.own_name(symbol), default=0.0) < 0.6:
            score *= 0.5  # hundreds of lines mention much and are about little of it
        if key not in named:
            score += 0.3 * _module_says(symbol, question, sources, relevance) + 0.35 * _file_is_about(symbol, question)
            if symbol.name.startswith("_"):
                score *= 0.75  # a helper of something that would say more
        if key in named:  # a type that only shares a noun with the question does not do what is asked for
            noun = symbol.kind in TYPE_KINDS | VALUE_KINDS and (deed is not None or question.aspect == "configured")
            part = deed is not None and not names_it_all(deed, symbol.name)
            score += 0.2 if (noun or part) and not relevance.is_named(symbol) else 1.5
        if deed is not None:
            if symbol.kind in VALUE_KINDS and not relevance.is_named(symbol):
                score *= 0.5  # a value does nothing
            elif match.by_term.get(deed.asked, 0.0) < 0.3 and not _share(deed, symbol):
                score *= 0.5  # it takes or mentions the thing, and neither does the deed nor is about it
            score *= 1.0 if deed.done_by(symbol.name) or relevance.is_named(symbol) or deed.runs else 0.85
            score += _deed_worth(deed, symbol, index)
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


def _doing(deed: Deed, index: CodeIndex, finder: Finder) -> Iterator[Symbol]:
    """Definitions called by a verb of the same meaning and what it is done to; the rest is found by ranking."""
    for name in dict.fromkeys(deed.names()):
        yield from index.definitions(name, limit=4)
    for hit in finder.find_symbols(" ".join((*deed.objects, *deed.verbs[:4])), limit=40):
        yield hit.symbol
    for file in finder.find(" ".join(deed.objects), limit=6, include_tests=False):
        yield from (s for s in index.symbols(file.path) if s.kind in FUNCTION_KINDS and names_it_all(deed, s.name))


def _with_deed(match: Matches, deed: Deed, symbol: Symbol) -> Matches:
    """A verb of the same meaning counts as the word of the question, initials as the words they stand for."""
    by_term = dict(match.by_term)
    own = name_words(symbol.name)
    if symbol.kind in FUNCTION_KINDS and _share(deed, symbol):
        by_term[deed.asked] = max(by_term.get(deed.asked, 0.0), 0.8 * deed.done_by(symbol.name))
    for particle in deed.particles:
        by_term[particle] = by_term.get(deed.asked, 0.0)
    for thing in deed.objects:
        if initials(thing, own):
            by_term[thing] = max(by_term.get(thing, 0.0), 0.9)
    if deed.runs and names_it_all(deed, symbol.name):  # it is the deed itself: who sets it going says so elsewhere
        by_term[deed.asked] = max(by_term.get(deed.asked, 0.0), 0.6)
    pairs = match.pairs
    if not pairs and len(deed.objects) > 1 and names_it_all(deed, symbol.name):
        pairs = 1
    return replace(match, by_term=by_term, pairs=pairs)


def _share(deed: Deed, symbol: Symbol) -> float:
    owner = symbol.qualified.rpartition(".")[0]
    return object_share(deed, symbol.name, owner, symbol.path.rpartition(".")[0], symbol.doc)


def _decides(deed: Deed, row: str) -> bool:
    """Whether a line is a condition on all that is asked for: so code checks, whatever its function is called."""
    held = name_words(row)
    return _CONDITION.match(row) is not None and all(
        any(term_match(thing, word) >= 0.85 for word in held) for thing in deed.objects
    )


def _deed_worth(deed: Deed, symbol: Symbol, index: CodeIndex) -> float:
    """What does it is worth more than what only speaks of it; what sets something going is called from elsewhere."""
    if symbol.kind not in FUNCTION_KINDS:
        return 0.0
    worth = 0.6 * deed.done_by(symbol.name) * _share(deed, symbol)
    if deed.runs and names_it_all(deed, symbol.name):
        callers = {key_of(edge.caller) for edge in index.callers(symbol, limit=20, tests=False)} - {key_of(symbol)}
        worth += 0.2 * min(4, len(callers)) + (0.2 if deed.at_once(symbol.name) else 0.0)
    return worth


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
        if (
            _DANGLING.match(row)
            or row.rstrip().endswith("(")
            or row.lstrip().startswith("# ")
            or (question.aspect != "configured" and declared_at(symbol, number, sources))
        ):
            continue  # half a statement says nothing by itself, nor does the name of a parameter
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
    question: Question,
    index: CodeIndex,
    finder: Finder,
    sources: Sources,
    grep: Grep,
    code_paths: Sequence[str],
) -> Iterator[Draft]:
    """What the subject is by default in code, lines of configuration files, and constants that speak of it."""
    terms = [t for t in question.strong_terms if t not in ("configured", "set", "settings")] or list(question.terms)
    if not terms:
        return
    order = 0
    seen: set[tuple[str, int]] = set()
    if question.aspect == "configured":
        found = [*_file_settings(question, terms, index, finder, sources, grep, code_paths)]
        for draft in (*found[:2], *_default_drafts(question, index, sources, grep, code_paths), *found[2:4]):
            at = draft.citations[0][:2]
            if at not in seen:
                seen.add(at)
                yield replace(draft, data={**draft.data, "order": order})
                order += 1
    names = {symbol.name: symbol for symbol in _value_symbols(question, index, finder)}
    scored = [(-_covers(terms, s.name), s.path, s.start, s) for s in names.values()]
    for negative, path, line, symbol in sorted(scored, key=lambda item: item[:3]):
        if -negative < 0.5 or order >= MAX_SETTINGS or (path, line) in seen:
            continue
        seen.add((path, line))
        row = sources.line(path, line).strip()
        yield Draft(
            claim=f"`{symbol.qualified}` is set at {where(path, line)}: `{shorten(row, 120)}`.",
            kind="decision",
            citations=((path, line, line),),
            symbols=(symbol.qualified,),
            relevance=0.6 if question.aspect == "configured" else 0.35,
            data={"step": "setting", "order": order, "path": path, "line": line, "text": shorten(row, 160),
                  "symbol": symbol.qualified},
        )  # fmt: skip
        order += 1


def _default_drafts(
    question: Question, index: CodeIndex, sources: Sources, grep: Grep, code_paths: Sequence[str]
) -> Iterator[Draft]:
    for one in defaults_of(question, index, sources, grep, code_paths):
        inside = f" of `{one.owner}`" if one.owner else ""
        value = f"the default `{shorten(one.value, 60)}`" if one.value else "its row"
        yield Draft(
            claim=f"`{one.name}`, a {one.manner}{inside}, has {value} at {where(one.path, one.line)}.",
            kind="decision",
            citations=((one.path, one.line, one.line),),
            symbols=tuple(name for name in (one.owner, one.name) if name),
            relevance=0.8,
            data={"step": "setting", "path": one.path, "line": one.line, "text": shorten(one.text, 160),
                  "symbol": one.owner, "sure": True, "manner": one.manner, "name": one.name,
                  "value": shorten(one.value, 60)},
        )  # fmt: skip


def _file_settings(
    question: Question,
    terms: Sequence[str],
    index: CodeIndex,
    finder: Finder,
    sources: Sources,
    grep: Grep,
    code_paths: Sequence[str],
) -> Iterator[Draft]:
    """Keys of the program's own configuration files that the file, the section and the key together name."""
    own = own_words(index, sources)
    wanted = [t for t in terms if t not in own] or list(terms)
    scored: list[tuple[float, str, int, str, str, str]] = []
    for path in _config_files(question, index, finder):
        section = ""
        stem_of = path.rpartition("/")[2].partition(".")[0]
        for number, row in sources.lines(path, 1, 3000):
            opened = _SECTION.match(row)
            if opened:
                section = next(group for group in opened.groups() if group)
            given = _KEY.match(row)
            if opened or len(row) > 400 or given is None or path.endswith(".lock"):
                continue
            key = given.group("key")
            said = _covers(name_words(key), " ".join(question.terms))  # nothing in the key that was not asked for
            around = section or stem_of
            if said < 0.75 or _covers(wanted, f"{around} {key}") < 0.75:
                continue
            worth = 1.0 - 0.05 * path.count("/") + 0.2 * _covers(wanted, f"{section} {key}")
            scored.append((-worth, path, number, row.strip(), section, key))
    for _, path, number, row, section, key in sorted(scored)[:4]:
        read = _reader(section, key, terms, index, sources, grep, code_paths)
        readers = f"; {where(read[0], read[1])} reads it" if read else ""
        yield Draft(
            claim=f"A setting stands at {where(path, number)}: `{shorten(row, 120)}`{readers}.",
            kind="decision",
            citations=((path, number, number), *([(read[0], read[1], read[1])] if read else [])),
            symbols=(),
            relevance=0.8,
            data={"step": "setting", "path": path, "line": number, "text": shorten(row, 160), "symbol": "",
                  "sure": True, "manner": "file", "name": f"{section}.{key}" if section else key, "value": "",
                  "read": [{"path": read[0], "line": read[1], "inside": read[2]}] if read else []},
        )  # fmt: skip


def _reader(
    section: str,
    key: str,
    terms: Sequence[str],
    index: CodeIndex,
    sources: Sources,
    grep: Grep,
    code_paths: Sequence[str],
) -> tuple[str, int, str] | None:
    """The line of code that asks for a setting by its full name; of several the one closest to the question."""
    full = f"{section}.{key}" if section else key
    if not re.search(r"[._-]", full):
        return None
    found: list[tuple[float, str, int, str]] = []
    for match in grep.lines(rf"[\"'`]{re.escape(full)}[\"'`]", code_paths, limit=12):
        around = index.symbol_at(match.path, match.line)
        inside = around.qualified if around is not None and around.kind in FUNCTION_KINDS else ""
        told = _covers(terms, f"{inside} {match.path.rpartition('.')[0]}") + (0.5 if inside else 0.0)
        if match.line in sources.code_numbers(match.path):
            found.append((-told, match.path, match.line, inside))
    return min(found)[1:] if found else None


def _config_files(question: Question, index: CodeIndex, finder: Finder) -> list[str]:
    """Those of the program; what tells a build service or a checker what to do is asked about only by its name."""
    tooling = bool(set(question.terms) & _TOOLS)
    paths = [hit.path for hit in finder.find(question.search_text, limit=60)]
    strong = question.strong_terms
    for path in index.paths():
        if path.count("/") <= 1 or any(_covers([term], path) >= 0.85 for term in strong):
            paths.append(path)
    kept = dict.fromkeys(
        p
        for p in paths
        if path_role(p) == "config"
        and not p.endswith((".lock", "lock.json", ".sum"))
        and (tooling or not _TOOLING.search(p))
    )
    return list(kept)[:20]


def _value_symbols(question: Question, index: CodeIndex, finder: Finder) -> Iterator[Symbol]:
    for hit in finder.find_symbols(question.search_text, limit=60):
        if hit.symbol.kind in VALUE_KINDS and path_role(hit.symbol.path) == "code":
            yield hit.symbol


def _covers(terms: Sequence[str], text: str) -> float:
    held = name_words(text)
    if not terms:
        return 0.0
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
