"""Citations checked again: lines that moved are found, lines that changed are stale, unchecked never passes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scratch.findings import Citation, Finding
from scratch.recorder import TaskRecorder
from scratch.verify import ParsedCitation, Verifier, parse_citation
from tests.scratch.conftest import APP, MakeRecorder, MemorySource, NoText


@pytest.fixture
def recorder(make_recorder: MakeRecorder) -> TaskRecorder:
    recorder = make_recorder()
    recorder.shown("src/app.py", 1, 40)
    return recorder


@pytest.fixture
def finding(recorder: TaskRecorder) -> Finding:
    return recorder.record("Ten", kind="flow", citations=[("src/app.py", 10, 12)])


def check(source: MemorySource, finding: Finding) -> tuple[str, str, str]:
    checked = Verifier(source, cannot_read=NoText).check(finding)
    return checked.finding.status, checked.citations[0].verdict, checked.finding.citations[0].where


def test_the_same_snapshot_verifies(source: MemorySource, finding: Finding) -> None:
    assert check(source, finding) == ("verified", "verified", "src/app.py:10-12")


def test_a_change_elsewhere_in_the_file_verifies(source: MemorySource, finding: Finding) -> None:
    source.contents["src/app.py"] = APP + "\nmore"
    checked = Verifier(source, cannot_read=NoText).check(finding)
    assert checked.finding.status == "verified"
    assert checked.finding.citations[0].blob != finding.citations[0].blob
    assert checked.moved


def test_moved_lines_are_found_in_their_file(source: MemorySource, finding: Finding) -> None:
    source.contents["src/app.py"] = "\n".join(["new"] * 6) + "\n" + APP.replace("line 11 of", "  line  11\tof")
    assert check(source, finding) == ("verified", "relocated", "src/app.py:16-18")


def test_blank_lines_between_do_not_hide_them(source: MemorySource, finding: Finding) -> None:
    source.contents["src/app.py"] = APP.replace("\nline 11 of", "\n\n\nline 11 of")
    assert check(source, finding) == ("verified", "relocated", "src/app.py:10-14")


def test_a_renamed_file_is_found_by_its_bytes(source: MemorySource, finding: Finding) -> None:
    source.contents["lib/main.py"] = source.contents.pop("src/app.py")
    assert check(source, finding) == ("verified", "relocated", "lib/main.py:10-12")


def test_a_file_moved_and_changed_is_found_by_its_name(source: MemorySource, finding: Finding) -> None:
    del source.contents["src/app.py"]
    source.contents["lib/app.py"] = "new\n" + APP
    assert check(source, finding) == ("verified", "relocated", "lib/app.py:11-13")


def test_changed_lines_are_stale(source: MemorySource, finding: Finding) -> None:
    source.contents["src/app.py"] = APP.replace("step 11", "step eleven")
    assert check(source, finding)[:2] == ("stale", "stale")
    source.contents["src/app.py"] = None
    assert check(source, finding)[:2] == ("stale", "stale")
    del source.contents["src/app.py"]
    assert check(source, finding)[:2] == ("stale", "stale")


def test_one_stale_citation_makes_the_finding_stale(recorder: TaskRecorder, source: MemorySource) -> None:
    finding = recorder.record("Two", kind="flow", citations=[("src/app.py", 1, 1), ("src/app.py", 20, 20)])
    source.contents["src/app.py"] = APP.replace("step 20", "step twenty")
    checked = Verifier(source, cannot_read=NoText).check(finding)
    assert checked.finding.status == "stale"
    assert [one.verdict for one in checked.citations] == ["verified", "stale"]


def test_nothing_checked_is_never_a_pass(recorder: TaskRecorder, source: MemorySource) -> None:
    question = recorder.question("Why?")
    assert (
        Verifier(source, cannot_read=NoText).check(replace(question, status="verified")).finding.status == "unverified"
    )


def test_what_was_refuted_stays_refuted(source: MemorySource, finding: Finding) -> None:
    assert check(source, replace(finding, status="refuted"))[0] == "refuted"


def test_the_stored_quote_is_not_trusted_only_its_hash(source: MemorySource, finding: Finding) -> None:
    forged = replace(finding.citations[0], quote_sha256="0" * 64)
    assert check(source, replace(finding, citations=(forged,)))[0] == "stale"


def test_lines_with_a_redacted_secret_are_found_again(make_recorder: MakeRecorder, source: MemorySource) -> None:
    key = "AKIA" + "Q7RZ2MWX" * 2
    source.contents["conf.py"] = f"a = 1\nkey = '{key}'\nb = 2"
    recorder = make_recorder()
    recorder.shown("conf.py", 1, 3)
    for lines in ((2, 2), (1, 3), (2, 3)):
        finding = recorder.record(f"Key {lines}", kind="risk", citations=[("conf.py", *lines)])
        assert key not in finding.citations[0].quote
        source.contents["conf.py"] = f"# new\n\na = 1\nkey = '{key}'\nb = 2"
        assert check(source, finding) == ("verified", "relocated", replace_lines(lines))
        source.contents["conf.py"] = f"a = 1\nkey = '{key}'\nb = 2"


def replace_lines(lines: tuple[int, int]) -> str:
    start, end = lines[0] + 2, lines[1] + 2
    return f"conf.py:{start}" if start == end else f"conf.py:{start}-{end}"


def test_a_long_quote_that_was_cut_when_stored_is_found_again(
    make_recorder: MakeRecorder, source: MemorySource
) -> None:
    long = "\n".join(f"statement number {n} of a very long function body" for n in range(300))
    source.contents["long.py"] = long
    recorder = make_recorder()
    recorder.shown("long.py", 1, 300)
    finding = recorder.record("Long", kind="flow", citations=[("long.py", 5, 250)])
    assert len(finding.citations[0].quote) < len(long) / 2
    source.contents["long.py"] = "new\n" + long
    assert check(source, finding) == ("verified", "relocated", "long.py:6-251")


PARSED = {
    "src/a.py:12": ("src/a.py", 12, 12),
    "src/a.py:12-19": ("src/a.py", 12, 19),
    "src/a.py:L12-L19": ("src/a.py", 12, 19),
    "src/a.py:L12": ("src/a.py", 12, 12),
    "src/a.py#L12-L19": ("src/a.py", 12, 19),
    "src/a.py#L12": ("src/a.py", 12, 12),
    "src/a.py#L12C3-L19C5": ("src/a.py", 12, 19),
    "./src/a.py:12": ("src/a.py", 12, 12),
    "`src/a.py:12`": ("src/a.py", 12, 12),
    "src/a.py:12\u201319": ("src/a.py", 12, 19),
    "src/a.py:12:5": ("src/a.py", 12, 12),
    "odd: name 1.py:3-4": ("odd: name 1.py", 3, 4),
    "a:b:c.py:7": ("a:b:c.py", 7, 7),
    "dir with space/x y.md:1": ("dir with space/x y.md", 1, 1),
    "C#/x.cs#L4": ("C#/x.cs", 4, 4),
}
UNPARSED = [
    *("", "src/a.py", "src/a.py:", "src/a.py:0", "src/a.py:0-5", "src/a.py:5-3", ":12", "src/a.py:-3", "src/a.py:x"),
    *("src/a.py:1.5", "src/a.py lines 3 to 4", "src/a.py:12-", "src/a.py#L0", "src/a.py#12", " :1"),
]


@pytest.mark.parametrize("text", PARSED)
def test_the_usual_forms_are_parsed(text: str) -> None:
    assert parse_citation(text) == ParsedCitation(*PARSED[text])


@pytest.mark.parametrize("text", UNPARSED)
def test_anything_else_is_none(text: str) -> None:
    assert parse_citation(text) is None


@given(st.text(max_size=60))
def test_no_text_raises(text: str) -> None:
    parsed = parse_citation(text)
    assert parsed is None or 1 <= parsed.start <= parsed.end


paths = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="`#"), min_size=1, max_size=30)


@given(
    paths.filter(lambda path: path.strip() == path and not path.startswith("./") and not path[-1].isdigit()), st.data()
)
def test_where_is_parsed_back(path: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(1, 10_000))
    end = data.draw(st.integers(start, 20_000))
    citation = Citation(path=path, start=start, end=end, blob="0" * 40, quote="", quote_sha256="0" * 64)
    assert parse_citation(citation.where) == ParsedCitation(path, start, end)
