"""What is done to the subject of a "where is X done" question, and which definitions do it.

"Where is the routing tree built?" asks for what builds it. Code says that with a verb of its own (`addRoute`), seldom
with the one of the question, and what merely holds the nouns (`updateRouteTree`) is not the answer. So verbs are put
into groups that mean the same to somebody who asks where; a group is matched against the words of a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from subagents.static.question import Question
from subagents.static.relevance import name_words, stem, term_match

_GROUPS: tuple[tuple[str, ...], ...] = tuple(
    tuple(group.split())
    for group in """
    build make create construct add insert append register assemble generate compile
    create make new open init build alloc add construct spawn
    trigger start begin launch fire kick schedule invoke initiate call run execute
    abort cancel stop interrupt kill terminate quit halt
    check validate verify ensure enforce match test compare
    parse read decode scan tokenize
    write save store dump flush persist put
    save write store dump flush persist put
    load read open fetch parse import
    emit send fire dispatch notify publish signal post add
    send write emit dispatch post push
    delete remove drop erase clear free unlink purge discard
    remove delete drop erase clear free unlink purge discard pop
    evict remove delete free expire drop perform
    expire delete remove evict
    merge combine join update union
    close shutdown shut stop destroy dispose release teardown finish
    shut shutdown close stop destroy release
    stop cancel abort halt terminate shutdown close kill
    sign hash seal
    pop remove leave exit
    push enter add
    choose select pick resolve decide find get lookup match
    select choose pick resolve find get
    decide choose select check should determine
    resolve find lookup get match
    match find lookup resolve compare
    register add insert append install attach mount bind subscribe include put
    render write format draw print
    encode serialize marshal dump format
    decode parse unmarshal load
    apply perform execute run use do
    cache store memoize remember save
    catch handle recover rescue
    handle process dispatch serve on
    raise throw abort fail
    retry again increment
    split partition divide
    sort order rank
    count increment track
    update set change refresh modify
    rename move
    allocate alloc new create reserve
    connect open dial establish
    encrypt seal cipher
    escape quote sanitize
    log write emit record print
    """.strip().splitlines()
)
_RUNNING = frozenset(
    {"trigger", "start", "begin", "launch", "fire", "kick", "schedule", "invoke", "initiate", "call", "run"}
)
_CHECKING = frozenset({"check", "validate", "verify", "ensure", "enforce"})
_AT_ONCE = frozenset({"background", "async", "start", "schedule", "now", "maybe", "trigger", "run", "perform", "begin"})
_ASIDE = re.compile(
    r"\b(when|if|by|from|for|in|into|to|on|during|after|before|while|with|at|until|because|so that|once|how)\b", re.I
)
_PASSIVE = re.compile(r"\b(?:is|are|was|were|get|gets|got|being|been|does|do)\b\s+(.*)$", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """`asked` is the word of the question, `verbs` what code may call it (`asked` first), `objects` the rest."""

    asked: str
    verbs: tuple[str, ...]
    objects: tuple[str, ...]
    particles: tuple[str, ...] = ()
    """Words that belong to the verb: the `down` of `shut down`."""

    @property
    def runs(self) -> bool:
        """It asks what sets something going: who calls it is the answer."""
        return self.verbs[0] in _RUNNING

    @property
    def checks(self) -> bool:
        """It asks what decides: a condition does that, in a function of any name."""
        return self.verbs[0] in _CHECKING

    def done_by(self, name: str) -> float:
        """How surely a definition of this name does it: 1 for the verb of the question in front."""
        words = name_words(name)
        best = 0.0
        for at, word in enumerate(words):
            for order, verb in enumerate(self.verbs):
                if term_match(verb, word) >= 0.85:
                    best = max(best, (1.0 if order == 0 else 0.85) * (1.0 if at == 0 else 0.75))
        return best

    def at_once(self, name: str) -> bool:
        return any(word in _AT_ONCE for word in name_words(name))

    def names(self) -> Iterator[str]:
        """How a definition that does it could be called: addRoute, add_route, routeAdd."""
        for verb in self.verbs:
            for thing in self.objects[-3:]:
                for noun in _nouns(thing):
                    yield verb + noun.capitalize()
                    yield f"{verb}_{noun}"
                    yield verb.capitalize() + noun.capitalize()


def deed_of(question: Question) -> Deed | None:
    """The participle at the end of "where is the routing tree built", if it says what code does."""
    if question.kind != "where":
        return None
    text = re.split(r"[?!.;,]", question.text)[0]
    passive = _PASSIVE.search(text)
    if passive is None:
        return None
    said = re.findall(r"[A-Za-z]+", _ASIDE.split(passive.group(1))[0])
    particles: list[str] = []
    while said and said[-1].lower() in ("down", "up", "out", "off", "away", "back", "again", "actually", "first"):
        particles.append(said.pop().lower())
    if len(said) < 2:
        return None
    asked = said[-1].lower()
    group = next((g for g in _GROUPS if _means(asked, g[0])), None) or next(
        (g for g in _GROUPS if any(_means(asked, verb) for verb in g)), None
    )
    if group is None and asked in question.strong_terms:
        group = _forms(asked) or None
    objects = tuple(t for t in question.strong_terms if t != asked and t not in particles)
    if group is None or not objects:
        return None
    own = next((verb for verb in group if _means(asked, verb)), group[0])
    return Deed(asked=asked, verbs=(own, *(v for v in group if v != own)), objects=objects, particles=tuple(particles))


def bare_verbs(question: Question) -> tuple[str, ...]:
    """The verb of "how is a chain aborted", as a function may be called that does just that: abort, aborte; else ()."""
    text = re.split(r"[?!.;,]", question.text)[0]
    passive = re.match(r"\W*how\s+(?:is|are|was|were)\s+(.+)$", text, re.I)
    if question.kind != "how" or passive is None:
        return ()
    said = [word.lower() for word in re.findall(r"[A-Za-z]+", _ASIDE.split(passive.group(1))[0])]
    while said and said[-1].endswith("ly"):
        said.pop()
    if len(said) < 2 or said[-1] in question.weak_terms or said[-1] not in question.terms:
        return ()
    forms = _forms(said[-1])
    if not forms:
        known = next((verb for group in _GROUPS for verb in group if stem(said[-1]) == stem(verb)), "")
        return (known,) if known and known != said[-1] else ()
    return forms


def _forms(participle: str) -> tuple[str, ...]:
    """What a regular participle may be the participle of: aborted: abort, aborte; else ()."""
    bare = re.sub(r"(?<=..)ed$", "", participle)
    if bare == participle:
        return ()
    forms = [bare, bare + "e"]
    if bare[-1:] == bare[-2:-1]:
        forms.append(bare[:-1])
    if bare.endswith("i"):
        forms.append(bare[:-1] + "y")
    return tuple(forms)


def object_share(deed: Deed, name: str, owner: str, path: str, doc: str) -> float:
    """How much of what it is done to a definition names: in its own name fully, less in its owner, doc and path."""
    own, above, near, told = name_words(name), name_words(owner), name_words(path), name_words(doc)
    total = 0.0
    for thing in deed.objects:
        in_own = max(max((term_match(thing, w) for w in own), default=0.0), 0.9 * initials(thing, own))
        in_owner = max((term_match(thing, w) for w in above), default=0.0)
        in_near = max((term_match(thing, w) for w in near), default=0.0)
        in_doc = max((term_match(thing, w) for w in told), default=0.0)
        total += max(in_own, 0.9 * in_owner, 0.5 * in_near, 0.6 * in_doc)
    return total / len(deed.objects)


def names_it_all(deed: Deed, name: str) -> bool:
    """Whether the name holds all that it is done to."""
    own = name_words(name)
    return all(any(term_match(thing, word) >= 0.85 for word in own) or initials(thing, own) for thing in deed.objects)


def initials(term: str, words: Sequence[str]) -> float:
    """1 when a term of three letters or more is made of first letters of the words in a row: aof, append only file."""
    if not 3 <= len(term) <= 5:
        return 0.0
    first = "".join(word[:1] for word in words)
    return 1.0 if term in first else 0.0


def _means(asked: str, verb: str) -> bool:
    if asked == verb or stem(asked) == stem(verb):
        return True
    bare = re.sub(r"(ed|d|ing|en|n)$", "", asked)
    return len(bare) > 2 and (bare == verb or bare + "e" == verb or (bare[-1:] == bare[-2:-1] and bare[:-1] == verb))


def _nouns(term: str) -> list[str]:
    """A word of the question as a name would hold it: routing -> route, rout, routing; routes -> route."""
    forms = [term]
    if term.endswith("ing") and len(term) > 5:
        forms += [term[:-3] + "e", term[:-3]]
    if term.endswith("s") and len(term) > 3:
        forms.append(term[:-1])
    return list(dict.fromkeys(forms))
