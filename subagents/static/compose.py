"""From findings to an answer, in the shape the kind of question asks for. Pure: equal findings, equal answer."""

from __future__ import annotations

from collections.abc import Sequence

from scratch.findings import Finding
from subagents.engine import Answer, Coverage
from subagents.static import answer_dependents, answer_flow, answer_places, answer_structure
from subagents.static.drafts import listing
from subagents.static.facts import Facts
from subagents.static.markdown import code, plain
from subagents.static.question import Question
from subagents.static.unknown import Absent
from subagents.static.writing import Names, Writer

NO_MODEL = (
    "No model took part: places and their order were chosen by symbols, resolved calls, imports, prose, tests and "
    "history."
)


def compose(
    question: Question, findings: Sequence[Finding], coverage: Coverage, absent: Absent, every_path: Sequence[str]
) -> Answer:
    facts = Facts(findings)
    paths = sorted({c.path for f in findings for c in f.citations})
    names = Names(paths, every_path)
    names.register(sorted({s for f in findings for s in f.symbols}))
    writer = Writer(names)
    write = _shape(question, facts)
    if absent.names:
        writer.say(_nowhere(absent), ())
        writer.end_paragraph("Not found")
    found = not absent.is_all and write(question, facts, writer)
    if not found:
        writer = Writer(Names(paths, every_path))
        _not_found(question, facts, writer, coverage, absent)
    writer.end_paragraph()
    writer.block(_note(facts))
    return writer.answer(found=found)


def _shape(question: Question, facts: Facts):  # type: ignore[no-untyped-def]
    match question.kind:
        case "structure":
            return answer_structure.write
        case "dependents" | "impact":
            return answer_dependents.write
        case "where":
            return answer_places.write
        case "what":
            if facts.all("definition") and not facts.all("call"):
                return answer_places.write
            return answer_flow.write if facts.all("call") else answer_places.write
        case _:
            return answer_flow.write if facts.all("call") else answer_places.write


def _nowhere(absent: Absent) -> str:
    names = listing([code(name) for name in absent.names])
    stand = "stands" if len(absent.names) == 1 else "stand"
    rest = "" if absent.is_all else "; what follows is about the rest of the question"
    searched = f"looked for in {absent.files:,} files that were read, and in their paths"
    return f"{names} {stand} nowhere in this snapshot ({searched}){rest}."


def _not_found(question: Question, facts: Facts, writer: Writer, coverage: Coverage, absent: Absent) -> None:
    """Says so, with what was searched for and in how much; absence is claimed no further than that."""
    words = (
        ", ".join(code(w) for w in (*question.identifiers, *question.paths, *question.strong_terms)[:8]) or "nothing"
    )
    cut = bool(coverage.truncated or coverage.timed_out) and not absent.is_all
    sentence = (
        f"Not found: {_nowhere(absent)}"
        if absent.is_all
        else (
            f"Not found: no definition, call or import in this snapshot fits the question (searched for {words} in "
            f"{len(coverage.files_read):,} files that were read)."
        )
    )
    if cut:
        sentence += " Parts of the search were cut short (see coverage), so this is no proof of absence."
    writer.say(sentence, ())
    writer.end_paragraph("Short answer")
    near = [f for step in ("definition", "seed", "doc", "setting") for f in facts.all(step)][:5]
    if near:
        rows = [(plain(f.finding.claim), (f.id,)) for f in near]
        writer.bullets("Nearest, and not an answer", rows)


def _note(facts: Facts) -> str:
    if facts.refuted:
        return f"*{NO_MODEL} {facts.refuted} findings whose citations no longer held were left out.*"
    return f"*{NO_MODEL}*"
