"""One function a task role: what each kind of static subagent looks for. All yield drafts; none records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain as chained

from subagents.codebase.types import Symbol
from subagents.static import survey
from subagents.static.callgraph import FUNCTION_KINDS, TYPE_KINDS
from subagents.static.chain import Chain
from subagents.static.dependents import (
    Uses,
    alone_draft,
    caller_layers,
    callers,
    exported_drafts,
    external_importers,
    group_drafts,
    importers,
    key_drafts,
    other_uses,
    stand_in_draft,
    stand_ins,
    subclass_draft,
    subclasses,
    target_draft,
    text_uses,
    transitive_draft,
)
from subagents.static.drafts import Draft, place, plural, symbol_data, where
from subagents.static.flow import call_drafts, chain_places, exit_drafts, handover_drafts, outside_drafts
from subagents.static.lately import history_drafts
from subagents.static.mentions import uses_of
from subagents.static.places import definition_drafts, member_drafts, ranked_places, setting_drafts
from subagents.static.proofs import test_drafts
from subagents.static.prose import doc_drafts, mentions
from subagents.static.relevance import Relevance
from subagents.static.roles import path_role
from subagents.static.tables import registration_drafts, table_drafts
from subagents.static.targets import Target
from subagents.static.unknown import missing_terms
from subagents.static.work import Job, Maker

MIN_CHAIN_SCORE = 1.5
MIN_PLACE_SCORE = 0.22
MAX_SEED_FINDINGS = 8
FLOW_KINDS = ("how", "what", "other")


def locate_code(job: Job) -> Iterator[Draft]:
    """Seeds at once; then, by kind of question: roots of chains, ranked definitions, or what X is."""
    analysis, question = job.analysis, job.question
    missing = missing_terms(question, job.workspace)
    if missing:
        job.deliverable = f"nothing in the snapshot is called or mentions {', '.join(missing)}"
    strong = [t for t in question.strong_terms if t not in missing]
    named = any(t.exact for t in analysis.targets())
    if question.kind in ("dependents", "impact"):
        yield from _located_targets(job)
        return
    if question.kind == "structure":
        job.deliverable = "the survey answers this question"
        return
    lost = len(missing) / max(1, len(question.strong_terms))
    foreign = {name.lower() for name in question.proper} & set(missing)  # something by name, and not of this place
    if not named and (foreign or not strong or lost > 0.5 or (lost == 0.5 and question.strong_terms[0] in missing)):
        return
    for order, (symbol, score) in enumerate(analysis.seeds()[:MAX_SEED_FINDINGS]):
        job.tick()
        yield Draft(
            claim=f"`{symbol.qualified}` ({where(symbol.path, symbol.start, symbol.end)}) is among the places that "
            "match the question.",
            kind="structure",
            citations=(place(symbol),),
            symbols=(symbol.qualified,),
            confidence=0.7,
            relevance=round(max(0.2, 0.5 - 0.03 * order), 2),
            data={"step": "seed", "order": order, "score": round(score, 3), **symbol_data(symbol)},
        )
    if question.kind in FLOW_KINDS:
        yield from _roots(job)
    if question.kind != "how":
        ranked = ranked_places(
            question,
            job.workspace.index,
            job.workspace.finder,
            analysis.sources,
            Relevance(question),
            analysis.targets(),
        )
        yield from definition_drafts(question, [r for r in ranked if r[0] >= MIN_PLACE_SCORE], analysis.sources)


def _roots(job: Job) -> Iterator[Draft]:
    for number, chain in enumerate(job.analysis.chains(job.tick)):
        if chain.score < MIN_CHAIN_SCORE:
            continue
        root = chain.root
        yield Draft(
            claim=f"A chain of {len(chain.steps)} steps that fits the question starts at `{root.qualified}` "
            f"({where(root.path, root.start)}).",
            kind="flow",
            citations=(place(root),),
            symbols=(root.qualified,),
            relevance=1.0 - 0.05 * number,
            data={
                "step": "start",
                "chain": number,
                "order": number,
                "score": round(chain.score, 3),
                "covered": list(chain.covered),
                **symbol_data(root),
            },
        )


def _located_targets(job: Job) -> Iterator[Draft]:
    targets = job.analysis.targets()
    for number, target in enumerate(_distinct(targets)):
        defined = job.analysis.mentions(target.name).defined if target.kind == "name" else None
        draft = target_draft(target, job.analysis.sources, number, _defines(target, job), defined)
        if draft is not None:
            yield draft
    if targets:
        return
    name = _external_name(job)
    if name:
        found = external_importers(name, job.workspace.index, job.tick)
        yield from group_drafts(name, found, 0)
    if not job.deliverable:
        job.deliverable = "nothing in the snapshot is called so"


def _defines(target: Target, job: Job) -> list[str]:
    """The biggest top-level definitions of a file."""
    if target.kind != "file":
        return []
    own = [s for s in job.workspace.index.symbols(target.files[0]) if "." not in s.qualified]
    biggest = sorted(own, key=lambda s: (s.kind not in TYPE_KINDS, s.start - s.end, s.start))[:6]
    return [s.qualified for s in sorted(biggest, key=lambda s: s.start) if s.kind in TYPE_KINDS | FUNCTION_KINDS]


def _external_name(job: Job) -> str:
    question = job.question
    names = (*question.identifiers, *(p.lower() for p in question.proper), *question.strong_terms)
    return names[0] if names else ""


def _distinct(targets: list[Target]) -> list[Target]:
    """The named thing; several only when they are equally named (overloads of other files, a package and a type)."""
    kept: list[Target] = []
    for target in targets:
        if kept:
            first = kept[0]
            alike = _simple(target).lower() == _simple(first).lower()
            if path_role(target.files[0]) != "code" or not target.exact or first.kind == "name":
                continue
            if target.kind == "file" and first.kind == "package" and target.files[0] in first.files:
                continue
            if (target.kind != first.kind and not alike) or (
                target.symbol is not None and first.symbol is not None and _simple(target) != _simple(first)
            ):
                continue
        kept.append(target)
    return kept[:2]


def _simple(target: Target) -> str:
    if target.symbol is not None:
        return target.symbol.name
    last = target.name.rstrip("/").rpartition("/")[2]
    return last if target.kind == "package" else last.partition(".")[0]


def locate_docs(job: Job) -> Iterator[Draft]:
    names = [s.name for s, _ in job.analysis.seeds()[:6]] + [t.name for t in job.analysis.targets()[:2]]
    limit = 5 if job.question.kind == "structure" else 3
    yield from doc_drafts(
        job.question,
        job.workspace.index,
        job.workspace.finder,
        job.analysis.sources,
        Relevance(job.question),
        names,
        limit,
    )
    job.deliverable = "no paragraph of the documentation speaks of it"


def locate_config(job: Job) -> Iterator[Draft]:
    analysis, workspace = job.analysis, job.workspace
    yield from setting_drafts(
        job.question, workspace.index, workspace.finder, analysis.sources, analysis.grep, analysis.code_paths
    )
    job.deliverable = "no configuration file and no constant speaks of it"


def locate_tests(job: Job) -> Iterator[Draft]:
    places = [t.symbol for t in job.analysis.targets() if t.symbol is not None][:4]
    workspace, sources = job.workspace, job.analysis.sources
    yield from test_drafts(job.question, workspace.index, workspace.finder, sources, Relevance(job.question), places, 3)
    job.deliverable = "no test is about it by name"


def locate_history(job: Job) -> Iterator[Draft]:
    places = [(t.files[0], t.symbol.start) for t in job.analysis.targets()[:2] if t.symbol is not None and t.exact]
    places += [(symbol.path, symbol.start) for symbol, _ in job.analysis.seeds()[:4]]
    yield from history_drafts(job, list(dict(places).items())[:3])
    job.deliverable = "no history of these places at hand"


# --- trace: one chain --------------------------------------------------------------------------------------------


def _chain(job: Job) -> tuple[int, Chain] | None:
    root = job.task.settings.get("root")
    number = job.task.settings.get("chain", 0)
    if not isinstance(root, Mapping) or not isinstance(number, int):
        return None
    chain = job.analysis.chain_from((str(root["path"]), int(root["line"]), str(root["symbol"])), job.tick)
    return (number, chain) if chain is not None else None


def trace_calls(job: Job) -> Iterator[Draft]:
    found = _chain(job)
    if found is None:
        job.deliverable = "the chain could not be built again"
        return
    number, chain = found
    tools = job.analysis.tools
    yield from call_drafts(chain, number, tools)
    yield from exit_drafts(chain, number, tools)
    yield from handover_drafts(chain, number, tools)
    yield from outside_drafts(chain, number, tools)
    if tools.builder.graph.cut:
        job.truncated.append(
            f"call graph around the question: {plural(tools.builder.graph.cut, 'branch', 'branches')} not followed"
        )


def trace_setup(job: Job) -> Iterator[Draft]:
    found = _chain(job)
    if found is not None:
        number, chain = found
        yield from table_drafts(chain, number, job.analysis.tools)
        yield from registration_drafts(chain, number, job.analysis.tools)
    job.deliverable = "no table is read or called through on this path"


def trace_tests(job: Job) -> Iterator[Draft]:
    places = _task_places(job)
    workspace, sources = job.workspace, job.analysis.sources
    yield from test_drafts(job.question, workspace.index, workspace.finder, sources, _weighed(job), places)
    job.deliverable = "no test calls these places"


def trace_docs(job: Job) -> Iterator[Draft]:
    names = [s.qualified for s in _task_places(job)]
    yield from doc_drafts(
        job.question,
        job.workspace.index,
        job.workspace.finder,
        job.analysis.sources,
        _weighed(job),
        names,
        mentioning=mentions(names, job.analysis.grep, job.analysis.prose_paths),
    )
    job.deliverable = "no paragraph of the documentation mentions these places"


def trace_history(job: Job) -> Iterator[Draft]:
    places: dict[str, int] = {}
    for symbol in _task_places(job):
        places.setdefault(symbol.path, symbol.start)
    target = _target(job)
    if not places and target is not None:
        places = dict.fromkeys(target.files[:3], 1)
    yield from history_drafts(job, list(places.items())[:4])
    job.deliverable = "no history of these places at hand"


def _weighed(job: Job) -> Relevance:
    """The relevance of the grown graph, if it was grown for this question; else a plain one."""
    return job.analysis.relevance if job.question.kind in FLOW_KINDS else Relevance(job.question)


def _task_places(job: Job) -> list[Symbol]:
    found = _chain(job)
    if found is not None:
        return chain_places(found[1])
    target = _target(job)
    if target is not None and target.symbol is not None:
        return [target.symbol]
    symbol = _symbol(job)
    return [symbol] if symbol else []


# --- trace: one target -------------------------------------------------------------------------------------------


def _number(job: Job) -> int:
    number = job.task.settings.get("number", 0)
    return number if isinstance(number, int) else 0


def _symbol(job: Job) -> Symbol | None:
    """The definition a task is about, found again by place."""
    about = job.task.settings.get("symbol")
    if not isinstance(about, Mapping):
        return None
    path, line, name = str(about.get("path")), about.get("line"), str(about.get("symbol"))
    return next((s for s in job.workspace.index.symbols(path) if s.start == line and s.qualified == name), None)


def _target(job: Job) -> Target | None:
    symbol = _symbol(job)
    if symbol is not None:
        return Target(kind="symbol", name=symbol.qualified, files=(symbol.path,), symbol=symbol)
    about = job.task.settings.get("target")
    return next((t for t in job.analysis.targets() if t.symbol is None and t.name == about), None)


def trace_importers(job: Job) -> Iterator[Draft]:
    target = _target(job)
    method = target is not None and target.symbol is not None and "." in target.symbol.qualified
    if target is not None and not method:
        found = importers(target, job.workspace.index, job.tick)
        yield from group_drafts(target.name, found, _number(job), relevance=0.7)
        if found.truncated:
            job.truncated.append(f"importers of {target.name}: the first 400 of its files")
    job.deliverable = "nothing imports it"


def trace_callers(job: Job) -> Iterator[Draft]:
    """Calls and mentions that resolve; then lines that name it otherwise; or that there are none, if that was seen."""
    target, number, index = _target(job), _number(job), job.workspace.index
    symbol = target.symbol if target else None
    if target is not None and target.kind == "name":
        yield from _key_uses(job, target, number)
    if symbol is not None:
        sure, perhaps = callers(symbol, index)
        yield from group_drafts(symbol.qualified, sure, number, relevance=0.75)
        if perhaps.uses:
            yield from _at_most(group_drafts(symbol.qualified, perhaps, number, relevance=0.4), 4)
        known = {(u.path, u.line) for u in (*sure.uses, *perhaps.uses)}
        named = Uses(how="name", uses=())
        if symbol.kind not in FUNCTION_KINDS:
            named = other_uses(symbol, index, {(u.path, u.line) for u in sure.uses})
            if symbol.kind in TYPE_KINDS:  # in the text too: a subscript or a macro hides a type from the grammar
                job.tick()
                taken = known | {(u.path, u.line) for u in named.uses}
                more = uses_of(symbol, job.analysis.mentions(symbol.name), index, job.analysis.sources)
                both = {(u.path, u.line): u for u in (*named.uses, *text_uses(more, taken, index).uses)}
                named = replace(named, uses=tuple(both[at] for at in sorted(both)))
            yield from _at_most(group_drafts(symbol.qualified, named, number, relevance=0.5), 6)
        known |= {(u.path, u.line) for u in named.uses}
        job.tick()
        mentions = job.analysis.mentions(symbol.name)
        text = text_uses(uses_of(symbol, mentions, index, job.analysis.sources), known, index)
        yield from _at_most(group_drafts(symbol.qualified, text, number, relevance=0.5), 6)
        if not (sure.uses or named.uses or text.uses):
            yield alone_draft(
                symbol.qualified,
                place(symbol),
                [m for m in mentions.found if (m.path, m.line) not in known and m.form != "keyword"],
                mentions.complete and not perhaps.uses,
                number,
            )
        _truncated(job, symbol, sure)
    job.deliverable = "no call of it was found"


def _key_uses(job: Job, target: Target, number: int) -> Iterator[Draft]:
    """Where a key is given a value, who names it, and who reads the field that stands for it."""
    index = job.workspace.index
    mentions = job.analysis.mentions(target.name)
    yield from key_drafts(target.name, mentions.found, number)
    yield from _at_most(group_drafts(target.name, text_uses(mentions.found, set(), index), number, relevance=0.75), 8)
    for symbol in stand_ins(target.name, mentions.found, index):
        job.tick()
        yield stand_in_draft(target.name, symbol, job.analysis.sources, number)
        through = uses_of(symbol, job.analysis.mentions(symbol.name), index, job.analysis.sources)
        found = text_uses(through, {(symbol.path, symbol.start)}, index, how="alias")
        yield from _at_most(group_drafts(symbol.qualified, found, number, relevance=0.7), 6)
    if not mentions.complete:
        job.truncated.append(f"lines that name {target.name}: the first {len(mentions.found)}")


def _truncated(job: Job, symbol: Symbol, uses: Uses) -> None:
    if uses.truncated:
        job.truncated.append(f"callers of {symbol.qualified}: the first {len(uses.uses)}")


def trace_subclasses(job: Job) -> Iterator[Draft]:
    target = _target(job)
    symbol = target.symbol if target else None
    if symbol is not None and symbol.kind in TYPE_KINDS:
        derived = subclasses(symbol, job.workspace.index, job.tick)
        if derived:
            yield subclass_draft(symbol, derived, _number(job))
    job.deliverable = "nothing extends it"


def trace_transitive(job: Job) -> Iterator[Draft]:
    target = _target(job)
    if target is not None and target.symbol is not None and target.symbol.kind in FUNCTION_KINDS:
        yield from caller_layers(target.symbol, job.analysis.tools, _number(job), job.tick)
    elif target is not None:
        direct = importers(target, job.workspace.index, job.tick)
        draft = transitive_draft(target, direct, job.workspace.index, _number(job), job.tick)
        if draft is not None:
            yield draft
    job.deliverable = "nothing reaches it along imports"


def trace_public(job: Job) -> Iterator[Draft]:
    target = _target(job)
    if target is not None:
        yield from exported_drafts(target, job.workspace.index, job.analysis.sources, _number(job))
    job.deliverable = "no package root offers it again"


def trace_members(job: Job) -> Iterator[Draft]:
    symbol = _symbol(job)
    if symbol is not None and symbol.kind in TYPE_KINDS:
        yield from member_drafts(symbol, job.workspace.index, job.analysis.relevance)
    job.deliverable = "it has no public members"


def _at_most(drafts: Iterator[Draft], count: int) -> Iterator[Draft]:
    return (draft for draft, _ in zip(drafts, range(count), strict=False))


def trace_layers(job: Job) -> Iterator[Draft]:
    yield from chained(survey.dependency_drafts(job), survey.cycle_drafts(job), survey.hub_drafts(job))
    job.deliverable = "no folder imports another"


MAKERS: Mapping[str, Maker] = {
    "survey": survey.survey_drafts,
    "locate.code": locate_code,
    "locate.docs": locate_docs,
    "locate.config": locate_config,
    "locate.tests": locate_tests,
    "locate.history": locate_history,
    "trace.calls": trace_calls,
    "trace.setup": trace_setup,
    "trace.tests": trace_tests,
    "trace.docs": trace_docs,
    "trace.history": trace_history,
    "trace.importers": trace_importers,
    "trace.callers": trace_callers,
    "trace.subclasses": trace_subclasses,
    "trace.transitive": trace_transitive,
    "trace.public": trace_public,
    "trace.members": trace_members,
    "trace.layers": trace_layers,
}
