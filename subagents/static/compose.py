"""From findings to an answer, in the shape the kind of question asks for. Pure: equal findings, equal answer."""

from __future__ import annotations

from collections.abc import Sequence

from scratch.findings import Finding
from subagents.engine import Answer, Coverage
from subagents.static import answer_dependents, answer_flow, answer_places, answer_structure
from subagents.static.facts import Facts
from subagents.static.markdown import code, plain
from subagents.static.question import Question
from subagents.static.writing import Names, Writer

NO_MODEL = (
    "No model took part: places and their order were chosen by symbols, resolved calls, imports, prose, tests and "
    "history."
)


def compose(question: Question, findings: Sequence[Finding], coverage: Coverage) -> Answer:
    facts = Facts(findings)
    paths = sorted({c.path for f in findings for c in f.citations})
    names = Names(paths)
    names.register(sorted({s for f in findings for s in f.symbols}))
    writer = Writer(names)
    write = _shape(question, facts)
    found = write(question, facts, writer)
    if not found:
        writer = Writer(Names(paths))
        _not_found(question, facts, writer, coverage)
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


def _not_found(question: Question, facts: Facts, writer: Writer, coverage: Coverage) -> None:
    """Says so, with what was searched for and in how much; absence is claimed no further than that."""
    words = (
        ", ".join(code(w) for w in (*question.identifiers, *question.paths, *question.strong_terms)[:8]) or "nothing"
    )
    cut = bool(coverage.truncated or coverage.timed_out)
    sentence = (
        f"Not found: no definition, call or import in this snapshot fits the question (searched for {words} in "
        f"{len(coverage.files_read):,} files that were read)."
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
