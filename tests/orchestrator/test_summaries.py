import random

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.summaries import CHARACTERS_PER_TOKEN, build_summary, summary_from_dict, summary_to_dict
from scratch.findings import Citation, Finding, FindingKind, FindingStatus, quote_hash


def finding(
    n: int, *, relevance: float = 0.5, kind: FindingKind = "flow", status: FindingStatus = "verified"
) -> Finding:
    cited = Citation(
        path=f"src/m{n}.py", start=n + 1, end=n + 3, blob="0" * 40, quote="x", quote_sha256=quote_hash("x")
    )
    return Finding(
        claim=f"`f{n}` calls `g{n}`",
        kind=kind,
        symbols=(f"f{n}",),
        citations=() if kind == "open_question" else (cited,),
        confidence=1.0,
        relevance=relevance,
        task="t",
        phase=1,
        recorded_at="2026-01-01T00:00:00Z",
        status=status,
    )


def test_key_findings_come_first_verbatim_with_citation_and_id() -> None:
    low, high = finding(1, relevance=0.1), finding(2, relevance=0.9)
    text = build_summary(1, "locate", [low, high]).markdown
    assert text.index("`f2` calls `g2` [src/m2.py:3-5]") < text.index("`f1` calls `g1`")
    assert high.id in text


def test_only_verified_findings_enter_and_questions_stand_apart() -> None:
    summary = build_summary(
        1, "locate", [finding(1, status="refuted"), finding(2, status="stale"), finding(3, kind="open_question")]
    )
    assert summary.findings == ()
    assert summary.open_questions == ("`f3` calls `g3`",)


@given(st.lists(st.floats(0, 1), max_size=60), st.integers(50, 800), st.randoms())
def test_bounded_and_independent_of_the_order(relevances: list[float], tokens: int, shuffle: random.Random) -> None:
    findings = [finding(n, relevance=r) for n, r in enumerate(relevances)]
    summary = build_summary(2, "trace", findings, most_tokens=tokens)
    mixed = list(findings)
    shuffle.shuffle(mixed)
    assert build_summary(2, "trace", mixed, most_tokens=tokens) == summary
    assert len(summary.findings) + summary.left_out == len(findings)
    assert len(summary.markdown) <= tokens * CHARACTERS_PER_TOKEN + 400


def test_a_stored_summary_comes_back_unless_a_finding_of_it_changed() -> None:
    findings = [finding(n) for n in range(3)]
    summary = build_summary(1, "locate", findings)
    known = {f.id: f for f in findings}
    assert summary_from_dict(summary_to_dict(summary), known) == summary
    del known[findings[1].id]
    assert summary_from_dict(summary_to_dict(summary), known) is None
