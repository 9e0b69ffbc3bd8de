"""What a question says, taken apart once: words by weight, names that look like code, and places.

A question may be one word, a sentence about architecture, or a bug report of a hundred kilobytes with a traceback.
The first line counts most, prose next, pasted code and output least: they name what was seen, mostly far from the
place that is to blame. No I/O.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from subagents.ranking.words import STOP_WORDS, all_keys, keys, parts, words_of

QUERY_CHARS = 20_000
"""What is read of a question; the rest of a longer one is mostly output somebody pasted."""
TERMS_LIMIT = 200
TITLE_WEIGHT = 2.0
PROSE_WEIGHT = 1.0
CODE_WEIGHT = 0.5

_GRAMMAR = """
    a about all also am an and any are as at be because been being both but by can could did do does doing either else
    ever every for from had has have having he her here him his how i if in into is it its itself just may me might more
    most much must my no nor not now of off on once only or other our out over own per please really same shall she
    should so some something still such than that the their them then there these they thing things this those through
    to too under until up upon us very via was we well were what when where whether which while who whom whose why will
    with would you your defined definition declared located implemented called used work works depends depend
"""
_FOREIGN = """
    der die das den dem des ein eine einer eines einem einen wie wo wer wird werden wurde wurden ist sind und oder nicht
    im am zum zur mit von vom für auf bei aus nach über wenn dass sich sie wir kann warum welche welcher welches gibt

    le la les un une des du de est et où comment qui que quoi dans pour par avec sur sont cette ces il elle ne pas au
    aux quand pourquoi quel quelle quels quelles

    el la los las una unos unas de en y para por con que qué cómo dónde del es cuál cuáles cuando cuándo al se lo

    o um uma de em e para por com que onde como da dos das é são quando qual ao pela pelo

    il gli una e per con che dove della delle dei di si è sono quando quale nel nella

    где как что это и в на с по из для не или кто какой какая какие каким когда почему ли он она они к у от при до
"""
FOREIGN = tuple(frozenset(words.split()) for words in _FOREIGN.split("\n\n"))
"""The same of other languages, one set each. In English text and in code some are names."""
GRAMMAR = frozenset(_GRAMMAR.split()).union(*FOREIGN)
"""Words that nobody asks about, even where no other word is left."""
_FOREIGN_LEAST, _FOREIGN_SHARE = 2, 0.25
"""So many different words of one such set, and such a part of all words, tell the language of a question."""

_FENCE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_PASTED = re.compile(
    r"(?:    |\t)\s*\S|>>>|\.\.\. |\s*(?:File \"|In \[|Out\[|Traceback |\$ |at [\w.$<>]+\(|\w*Error: |E  )"
)
_URL = re.compile(r"(?:https?|ftp)://[^\s/?#<>\"')\]]+([^\s?#<>\"')\]]*)(?:\?[^\s#]*)?(?:#([^\s<>\"')\]]*))?\S*")
_HOSTED = re.compile(r"/(?:blob|blame|raw|src|tree)/(?:(?:branch|commit|tag)/)?[^/]+/(.+)")
"""A page that shows a file of a repository; what follows the branch is the file's path."""
_LINE_ANCHOR = re.compile(r"(?:L|lines?-|n)(\d+)")
_NAME_ANCHOR = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_EXTENSION = (
    "pyi?|pyx|go|rs|tsx?|jsx?|mjs|cjs|cc?|h|cpp|cxx|hpp|hh|java|kts?|rb|php|cs|scala|swift|sh"
    "|hs|mli?|exs?|erl|clj[cs]?|fsx?|jl|lua|p[lm]|dart|vue|svelte|zig|nim|groovy|gradle|tcl|f90|s?css|sql|proto|xml"
    "|md|rst|adoc|txt|toml|ya?ml|json|cfg|ini"
)
_FILE = re.compile(rf"(?<![\w/])[\w.@/\\-]*\w\.(?:{_EXTENSION})\b")
_FRAME = re.compile(
    r'File "(?P<python>[^"\n]+)", line (?P<python_line>\d+)(?:, in (?P<python_name>\S+))?'
    r"|\bat (?P<java_name>[\w.$<>]+)\((?P<java>[\w.-]+):(?P<java_line>\d+)\)"
    r"|\bat (?:(?P<js_name>[\w.$<>\[\] ]+) \()?(?P<js>[\w./@\\:-]+\.[cm]?[jt]sx?):(?P<js_line>\d+):\d+\)?"
    rf"|(?P<plain>[\w./\\@-]+\.(?:{_EXTENSION})):(?P<plain_line>\d+)(?::in [`'](?P<ruby_name>[^'`\n]+)')?"
)
_TICKED = re.compile(r"`+([^`\n]{2,80})`+")
_CODE_WORD = re.compile(r"[A-Za-z_$]\w{2,}")
_DOTTED = re.compile(r"\b[A-Za-z_]\w*(?:(?:\.|::|#|->)[A-Za-z_]\w*)+")
_CALLED = re.compile(r"\b([A-Za-z_]\w{2,})\(")
_OPTION = re.compile(r"(?<![\w-])--?([a-zA-Z][\w-]{2,})")
_MIXED = re.compile(r"[a-z][A-Z]|[A-Z].*[A-Z]|[A-Z]+[a-z]+[A-Z]|\w_\w|^__\w+__$|^_\w")
_SPLIT = re.compile(r"\.|::|#|->")
_PAIR = re.compile(r"(?=\b([A-Za-z_]\w+)(?:\.|::|#)([A-Za-z_]\w+))")
_DOC_WORDS = frozenset({"doc", "docs", "documentation", "readme", "changelog", "tutorial", "guide", "manual"})
_CONFIG_WORDS = frozenset(
    {"config", "configuration", "configured", "settings", "yaml", "toml", "workflow", "dockerfile", "makefile"}
)
_TEST_WORDS = frozenset({"test", "tests", "tested", "testing", "spec", "fixture", "fixtures"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One entry of a traceback or `path:line`. `line` is 0 when none was given; `name` may be empty."""

    path: str
    line: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A term of the question: how often in each part, what weight that gives, and how it was written."""

    key: int
    word: str
    weight: float
    title: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    text: str
    title: str
    prose: str
    code: str
    terms: tuple[Term, ...]
    """Heaviest first, at most TERMS_LIMIT."""
    identifiers: Mapping[str, int]
    """Words that look like code, as written, and how often."""
    words: frozenset[str]
    """All words as written, stop words and one- and two-letter words left out."""
    title_words: frozenset[str]
    pairs: tuple[str, ...]
    """`Owner.member`, as written with any separator."""
    dotted: tuple[str, ...]
    """Dotted names, parts joined by `.`."""
    files: tuple[str, ...]
    frames: tuple[Frame, ...]
    """In the order of the text."""
    options: tuple[str, ...]
    wants_docs: bool
    wants_config: bool
    wants_tests: bool

    @property
    def is_empty(self) -> bool:
        return not self.terms and not self.files and not self.words


def parse(text: str) -> Query:
    """Take a question apart. Never fails: an empty or unreadable question gives an empty Query."""
    text = _COMMENT.sub(" ", text.replace("\r", "")[:QUERY_CHARS])
    plain = _URL.sub(_place_of_url, text)
    if not words_of(plain):  # nothing but addresses: their words are all there is
        plain = _URL.sub(lambda url: " ".join(words_of(f"{url[1]} {url[2] or ''}")), text)
    plain = _in_english(plain)
    title, prose, code = split(plain)
    identifiers = _identifiers(plain)
    words = words_of(plain)
    title_words = words_of(title)
    lowered = {word.lower() for word in words_of(title + " " + prose)}
    wanted = frozenset(word for word in words if len(word) > 2 and word.lower() not in STOP_WORDS)
    terms = _terms(title, prose, code)
    if not (terms or wanted):  # nothing but ordinary words: one of them may be a name
        wanted = frozenset(word for word in words if len(word) > 1 and word.lower() not in GRAMMAR)
        identifiers = dict(Counter(wanted))
    return Query(
        text=text,
        title=title,
        prose=prose,
        code=code,
        terms=terms,
        identifiers=identifiers,
        words=wanted,
        title_words=frozenset(title_words),
        pairs=tuple(dict.fromkeys(".".join(pair) for pair in _PAIR.findall(plain))),
        dotted=tuple(dict.fromkeys(".".join(_SPLIT.split(found)) for found in _DOTTED.findall(plain))),
        files=tuple(dict.fromkeys(_FILE.findall(plain))),
        frames=_frames(plain),
        options=tuple(dict.fromkeys(_OPTION.findall(plain))),
        wants_docs=bool(lowered & _DOC_WORDS),
        wants_config=bool(lowered & _CONFIG_WORDS),
        wants_tests=bool({word.lower() for word in title_words} & _TEST_WORDS),
    )


def _place_of_url(url: re.Match[str]) -> str:
    """The file, line or name that an address points at; the rest of it is mostly about somewhere else."""
    path, anchor = url[1], url[2] or ""
    if hosted := _HOSTED.search(path):
        line = _LINE_ANCHOR.match(anchor)
        return f" {hosted[1]}{f':{line[1]}' if line else ''} "
    return f" {name[0]} " if (name := _NAME_ANCHOR.match(anchor)) else " "


def _in_english(text: str) -> str:
    """The text, without the grammar of another language if it is written in one."""
    words = [word.lower() for word in words_of(text)]
    grammar = max(FOREIGN, key=lambda one: sum(word in one for word in words))
    share = sum(word in grammar for word in words) / max(1, len(words))
    if share < _FOREIGN_SHARE or len(grammar.intersection(words)) < _FOREIGN_LEAST:
        return text
    return re.sub(rf"\b(?:{'|'.join(sorted(grammar))})\b", " ", text, flags=re.IGNORECASE)


def split(text: str) -> tuple[str, str, str]:
    """(first line, prose, pasted code and output)."""
    first, _, rest = text.strip().partition("\n")
    code = _FENCE.findall(rest)
    prose: list[str] = []
    for line in _FENCE.sub("\n", rest).split("\n"):
        (code if _PASTED.match(line) else prose).append(line)
    return first, "\n".join(prose), "\n".join(code)


def _terms(title: str, prose: str, code: str) -> tuple[Term, ...]:
    counted = [Counter(all_keys(words_of(part))) for part in (title, prose, code)]
    in_title, in_prose, in_code = counted
    written: dict[int, str] = {}
    for part in (code, prose, title):
        for word in words_of(part):
            written.update(dict.fromkeys(keys(word), word))
            for piece in parts(word):  # a file that has one part of a name does not have the name
                written.update(dict.fromkeys(keys(piece), piece))
    terms = [
        Term(
            key=key,
            word=written[key],
            weight=TITLE_WEIGHT * (key in in_title)
            + PROSE_WEIGHT * math.log1p(in_prose[key])
            + CODE_WEIGHT * math.log1p(in_code[key]),
            title=key in in_title,
        )
        for key in {**in_title, **in_prose, **in_code}
    ]
    terms.sort(key=lambda term: (-term.weight, term.key))
    return tuple(terms[:TERMS_LIMIT])


def _identifiers(text: str) -> dict[str, int]:
    found: list[str] = []
    for ticked in _TICKED.findall(text):
        found += _CODE_WORD.findall(ticked)
    for word in _CODE_WORD.findall(text):
        if "_" in word.strip("_") or (_MIXED.search(word) and not word.isupper()):
            found.append(word)
    for dotted in _DOTTED.findall(text):
        found += _SPLIT.split(dotted)
    found += _CALLED.findall(text)
    found += [option.replace("-", "_") for option in _OPTION.findall(text)]
    return dict(Counter(word for word in found if len(word) > 2 and word.lower() not in STOP_WORDS))


def _frames(text: str) -> tuple[Frame, ...]:
    frames: list[Frame] = []
    for match in _FRAME.finditer(text):
        group = match.groupdict(default="")
        path = group["python"] or group["java"] or group["js"] or group["plain"]
        line = group["python_line"] or group["java_line"] or group["js_line"] or group["plain_line"]
        name = group["python_name"] or group["java_name"] or group["js_name"] or group["ruby_name"]
        if group["java"] and "." in name:  # the package tells the folder: com.acme.Shop.pay(Shop.java:3)
            package = name.split("$")[0].split(".")[:-2]
            path = "/".join([*package, path])
        frames.append(Frame(path=path, line=int(line or 0) if len(line) < 9 else 0, name=name.rpartition(".")[2]))
    return tuple(frames)
