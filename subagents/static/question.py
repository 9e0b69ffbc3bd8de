"""What is being asked: the kind of question, and what it is about. Words only, no I/O.

A question is sorted into one of a few kinds, because each kind has an answer of its own shape: a chain of calls, a
place, a list of dependents, a map. The subject is found without grammar: what is quoted or written like an
identifier or a path counts most, then pairs of neighbouring words ("query set" names `QuerySet`), then single words.
So a question in a language whose words are not known here still works through the names it mentions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from subagents.engine import QuestionKind
from subagents.ranking.query import GRAMMAR
from subagents.static.wordlists import words


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question, taken apart. Tuples keep the order of the text."""

    text: str
    kind: QuestionKind
    identifiers: tuple[str, ...]
    """Names written as code: quoted, dotted, snake_case, CamelCase, with digits, or called with parentheses."""
    paths: tuple[str, ...]
    """Names written as paths or files (`src/app.py`, `lib/net/`)."""
    terms: tuple[str, ...]
    """Content words in lower case, split at code boundaries, without question words."""
    weak_terms: frozenset[str]
    """Those of `terms` that say little alone (`function`, `file`, `work`), kept for pairs."""
    pairs: tuple[tuple[str, str], ...]
    """Neighbouring content words, e.g. ("query", "set")."""
    source_terms: tuple[str, ...] = ()
    """In "how does A become B": the words of A, else empty."""
    target_terms: tuple[str, ...] = ()
    aspect: str = ""
    """What is asked of the subject, if said: `configured`, `used`, `tested`, `documented`, `registered`, `removed`."""
    proper: tuple[str, ...] = ()
    """Capitalised words inside the sentence (`Session`): names if the repository defines them, else words."""

    @property
    def names_nothing(self) -> bool:
        """No word of it can be looked for."""
        return not (self.terms or self.identifiers or self.paths or self.kind == "structure")

    @property
    def strong_terms(self) -> tuple[str, ...]:
        """Terms that carry the meaning; all terms when every one is weak."""
        strong = tuple(term for term in self.terms if term not in self.weak_terms)
        return strong or self.terms

    @property
    def search_text(self) -> str:
        """What to give to a ranked search: names first, then words."""
        return " ".join((*self.identifiers, *self.paths, *self.terms)) or self.text


_KINDS: tuple[tuple[QuestionKind, str], ...] = (
    (
        "impact",
        r"\bwhat\b.*\b(break|breaks|fail|fails|happen|happens|change|changes|affected)\b.*\b(if|when|by)\b"
        r".*\b(chang\w+|drop\w*|remov\w+|delet\w+|renam\w+|replac\w+|refactor\w*|gone|deprecat\w+|rewr\w+|mov\w+)\b"
        r"|\b(impact|consequences|blast radius)\b.*\b(of|if)\b"
        r"|\bsafe(ly)? to (remove|delete|change|drop|rename|replace)\b"
        r"|\bwhat (would|will|could|might|does) break\b|\bwhat breaks\b"
        r"|\bcan (i|we|one) (remove|delete|drop|rename)\b"
        r"|\bwas (bricht|geht kaputt)\b|\bqu'est-ce qui casse\b",
    ),
    (
        "dependents",
        r"\b(what|who|which)\b.{0,60}?\b(depends?|rel(y|ies)) (up)?on\b"
        r"|\b(what|who|which)\b.{0,40}?\b(uses?|calls?|imports?|references?|extends?|inherits?|implements?|"
        r"subclass(es)?|consumes?)\b(?! to\b)"
        r"|\b(callers|users|dependents|importers|subclasses|usages|usage|implementations|implementors|consumers) of\b"
        r"|\bwhere (is|are|do we|does .+ get) .*\b(used|called|imported|referenced|instantiated|subclassed)\b"
        r"|\bhängt .*\bab\b|\bdépend(ent)? de\b|\bdepende[n]? de\b|\bзависит\b|依赖",
    ),
    (
        "structure",
        r"\b(structure|architecture|overview|lay ?out|layers?|organi[sz]ation)\b.*\b(repo\w*|project|code ?base|"
        r"code|librar\w+|packages?|system|source|tree|application|it|this)\b"
        r"|\b(repo\w*|project|code ?base|source tree)\b.*\b(structured|organi[sz]ed|laid out|structure|architecture|"
        r"layout|layers|overview|about)\b"
        r"|\b(how is|how are) (this|the|it)\b.{0,40}\b(structured|organi[sz]ed|laid out)\b"
        r"|\b(main|major|top.level|important) (components|modules|packages|parts|folders|directories)\b"
        r"|\bentry points?\b.*\b(repo\w*|project|code ?base|are|the)\b"
        r"|^(architecture|structure|overview|map)\W*$"
        r"|\bwhat (does|is) this (repo\w*|project|code ?base)\b"
        r"|\baufgebaut\b|\bstruktur\b|\bestructura\b",
    ),
    (
        "where",
        r"^\W*(where|whereabouts)\b|\b(which|what) (file|module|class|function|method|package|line|place|folder)s?\b"
        r"|\bin (what|which) (file|module|place|package)\b|\b(locate|find|show me) (the )?(definition|place|code)\b"
        r"|\bwhere\b.*\b(defined|declared|configured|implemented|set|located|registered|handled|decided|checked)\b"
        r"|^\W*(wo|où|dónde|donde|onde|dove|где)\b|哪里|在哪|どこ",
    ),
    (
        "how",
        r"^\W*(how|why)\b|\bwhat happens\b|\b(explain|describe|show|trace|walk)\b.*\b(how|flow|path|through|steps)\b"
        r"|\bhow (does|do|is|are|can|did)\b|\b(life ?cycle|control flow|data flow|call (chain|path|flow))\b"
        r"|^\W*(wie|comment|cómo|como|come|как|warum|pourquoi)\b|怎么|如何|どうやって|どのように",
    ),
    ("what", r"^\W*(what|who|which|explain|describe|tell me about|was ist|qu'est-ce|qué es|что)\b|^\W*[\w.:/`]+\W*$"),
)
_COMPILED = tuple((kind, re.compile(pattern, re.IGNORECASE | re.DOTALL)) for kind, pattern in _KINDS)

STOP_WORDS = words(
    """
    a about above after all also am an and any anything are as at away based be because been before being below
    between both but by call called calls can cannot causes cause code could depend depended depends dependents
    did do does doing done during each either else end ever every exactly explain describe finally find first
    for from gets get getting given go goes going got had happen happens has have having he her here him his how
    i if in inside instead into is it its itself just know last let like made main make makes makes making many
    may me might more most much must my need needs no nor not now of off on once one only onto or other our out
    over own per place please put really reach reaches reached repository repo project codebase result results
    same see shall she should show so some someone something still such take taken takes tell than that the
    their them then there these they thing things this those through to together too trace turn turned turns two
    under until up upon us use used user uses using very via was way we well were what whatever when where
    whether which while who whole whom whose why will with within without would you your become becomes became
    end ends happens relies rely break breaks broke broken change changed changes drop dropped drops remove
    removed removes delete deleted rename renamed import imports imported importers callers usages locate
    located defined definition declared implemented live lives lie came come comes wrong right safe safely
    impact affected affect walk actually currently exist exists different der die das den dem des ein eine einen
    wie wo was wird werden ist sind und oder in im zu zur zum von mit auf für le la les un une des du de est
    sont et ou comment où dans pour par sur que qui el los las una unos cómo dónde donde es son y o en para por
    con que qué se как где что это и в на из для
    """
)
_WEAK = words(
    """
    function functions method methods class classes file files module modules package packages object objects
    value values type types data name names work works working handle handled handles handling process processed
    system part parts component components instance instances variable variables implementation start started
    starts create created creates run runs running list item items thing set sets user users new python go rust
    java javascript c library app application default logic support feature step steps point points execute
    executed send sent invoke invoked perform performed apply applied load loaded decide decides decided
    determine determined structure architecture overview public api internal internals configured configure
    registered register tested documented test tests found stored kept called
    """
)
_ASPECTS: tuple[tuple[str, str], ...] = (
    ("configured", r"\b(configur\w+|settings?|options?|konfigur\w+|set up|default values?|defaults?)\b"),
    ("tested", r"\b(test|tests|tested|covered)\b"),
    ("documented", r"\b(documented|docs|documentation)\b"),
    ("registered", r"\bregister(ed|s)?\b"),
    ("removed", r"\b(drop\w*|remov\w+|delet\w+|gone)\b"),
    ("used", r"\b(used|called|referenced|instantiated|imported)\b"),
)
_TRANSITION = re.compile(
    r"\b(?:reach(?:es)?|becomes?|get (?:in)?to|gets (?:in)?to|turn(?:s|ed)? into|end(?:s)? up (?:in|as|at)?|"
    r"arrives? (?:at|in)|transformed (?:in)?to|converted (?:in)?to|translated (?:in)?to|compiled (?:in)?to|"
    r"result(?:s)? in|lead(?:s)? to|make(?:s)? it (?:in)?to|travels? to|passed to|flow(?:s)? (?:in)?to)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(
    r"`([^`\n]{1,200})`|\"([^\"\n]{1,200})\"|“([^”\n]{1,200})”|«([^»\n]{1,200})»|(?<!\w)'([^'\n]{1,80})'(?!\w)"
)
_CODE_WORD = re.compile(
    r"(?<![\w/.])(?:"
    r"[A-Za-z_$][\w$]*(?:(?:\.|::|->|#)[A-Za-z_$~][\w$]*)+"  # dotted
    r"|[A-Za-z]*_\w+"  # snake_case, _private, __dunder__
    r"|[a-z]+[a-z0-9]*[A-Z]\w*"  # camelCase
    r"|[A-Z][a-z0-9]+[A-Z]\w*"  # CamelCase
    r"|[A-Z]{2,}[a-z]\w*"  # HTTPServer
    r"|[A-Za-z_]\w*(?=\(\))"  # called()
    r")"
)
_PATH_WORD = re.compile(
    r"(?<![\w.])(?:(?:\.{0,2}/)?[\w.@+-]+(?:/[\w.@+-]+)+/?"
    r"|[\w-]+\.(?:py|pyi|js|jsx|mjs|ts|tsx|go|rs|java|kt|kts|c|h|cc|cpp|cxx|hpp|hh|cs|rb|php|swift|scala|sh|bash|md|rst|txt|"
    r"toml|yaml|yml|json|cfg|ini|conf))(?![\w])"
)
_NUMBERED = re.compile(r"\b[A-Za-z]{2,}\d+[A-Za-z\d]*\b")
_WORD = re.compile(r"[^\W\d_][\w]*", re.UNICODE)
_BOUNDARY = re.compile(
    r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[_\W]+|(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])"
)
_DOMAINS = frozenset({"e.g", "i.e", "etc", "vs"})


def subwords(name: str) -> list[str]:
    """Lower-case parts of a name at code boundaries: `HTTPServer.serve_forever` -> http server serve forever."""
    return [part.lower() for part in _BOUNDARY.split(name) if part]


def parse_question(text: str) -> Question:
    """Take a question apart. Never fails; an empty text gives an empty question of kind `other`."""
    text = " ".join(text.split())
    kind = _kind(text)
    identifiers, paths, quoted_words = _names(text)
    terms, pairs = _terms(text)
    pairs += tuple(pair for pair in _doing(text) if pair not in pairs and set(pair) <= set(terms))
    if not (terms or identifiers or paths) and kind != "structure":  # "where is get?": an ordinary word is the name
        identifiers = tuple(w for w in dict.fromkeys(_WORD.findall(text)) if w.lower() not in GRAMMAR)
        terms = tuple(dict.fromkeys(part for name in identifiers for part in subwords(name)))
    named = {part for name in identifiers for part in subwords(name)} | quoted_words
    told_apart = {word for word in _modifiers(text) if word.endswith("ed")}
    weak = frozenset(term for term in terms if (term in _WEAK or term in told_apart) and term not in named)
    source, target = _transition(text) if kind in ("how", "other") else ((), ())
    if kind == "structure" and (identifiers and not _whole_repository(text)):
        kind = "what"
    return Question(
        text=text,
        kind=kind,
        identifiers=identifiers,
        paths=paths,
        terms=terms,
        weak_terms=weak,
        pairs=pairs,
        source_terms=source,
        target_terms=target,
        proper=tuple(dict.fromkeys(re.findall(r"(?<=[\w,] )([A-Z][a-z]\w+)\b", text))),
        aspect=next((name for name, pattern in _ASPECTS if re.search(pattern, text, re.IGNORECASE)), ""),
    )


def _kind(text: str) -> QuestionKind:
    return next((kind for kind, pattern in _COMPILED if pattern.search(text)), "other")


def _whole_repository(text: str) -> bool:
    return bool(re.search(r"\b(repo\w*|project|code ?base|source tree|librar\w+)\b", text, re.IGNORECASE))


def _names(text: str) -> tuple[tuple[str, ...], tuple[str, ...], set[str]]:
    """Identifiers, paths, and the single words that were quoted (which count as names, weak or not)."""
    identifiers: dict[str, None] = {}
    paths: dict[str, None] = {}
    quoted_words: set[str] = set()
    for match in _QUOTED.finditer(text):
        quoted = next(group for group in match.groups() if group is not None).strip()
        if not quoted:
            continue
        if _PATH_WORD.fullmatch(quoted):
            paths[quoted.removeprefix("./")] = None
        elif " " not in quoted:
            identifiers[_clean(quoted)] = None
        quoted_words.update(subwords(quoted))
    for match in _PATH_WORD.finditer(text):
        if match.group().count("/") == 1 and re.fullmatch(r"[a-z]+/[a-z]+", match.group(), re.IGNORECASE):
            first, _, second = match.group().partition("/")
            if first.lower() in STOP_WORDS or second.lower() in STOP_WORDS:
                continue
        paths[match.group().removeprefix("./")] = None
    for match in _CODE_WORD.finditer(text):
        word = _clean(match.group())
        if word.lower() not in _DOMAINS and word not in paths and len(word) > 1:
            identifiers[word] = None
    for word in _NUMBERED.findall(text):  # `handler3`, and words like `utf8`
        if not any(word in name for name in (*identifiers, *paths)):
            identifiers[word] = None
    return tuple(name for name in identifiers if name), tuple(paths), quoted_words


def _clean(name: str) -> str:
    return re.sub(r"::|->|#", ".", name.strip()).removesuffix("()").strip(".")


def _terms(text: str) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    terms: dict[str, None] = {}
    pairs: dict[tuple[str, str], None] = {}
    previous = ""
    end_of_previous = -2
    for match in _WORD.finditer(text):
        gap = text[end_of_previous : match.start()] if end_of_previous >= 0 else ""
        end_of_previous = match.end()
        for part in subwords(match.group()):
            if part in STOP_WORDS or (len(part) < 2 and part.isascii()) or part.isdigit():
                previous = ""
                continue
            terms[part] = None
            if previous and previous != part and not re.search(r"[,;:.!?()]", gap):
                pairs[(previous, part)] = None
            previous = part
    return tuple(terms), tuple(pairs)


_DOING = re.compile(
    r"\b(?:does|do|did|can|will)\b.+?\b(run|execute|handle|process|send|start|create|load|apply|invoke|perform|write|"
    r"read|parse|find|resolve|build|make|open|close|store|check|steal|schedule|dispatch|commit|render)\b((?:\s+[\w-]+){2,4})"
    r"\W*$",
    re.IGNORECASE,
)


def _doing(text: str) -> Iterator[tuple[str, str]]:
    """In "how does A run a spawned B": run and B, which code writes as one name (`run_b`), whatever stands between."""
    match = _DOING.search(text)
    if match is not None:
        last = match.group(2).split()[-1].lower()
        yield match.group(1).lower(), last


def _modifiers(text: str) -> list[str]:
    """In "how does A run a spawned B" the word between: it tells which B, and is not what is done here."""
    match = _DOING.search(text)
    return [word.lower() for word in match.group(2).split()[:-1]] if match is not None else []


def _transition(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    match = _TRANSITION.search(text)
    if match is None:
        span = re.search(r"\bfrom\b(.+)\bto\b(.+)", text, re.IGNORECASE)
        return (_terms(span.group(1))[0], _terms(span.group(2))[0]) if span else ((), ())
    return _terms(text[: match.start()])[0], _terms(text[match.end() :])[0]
