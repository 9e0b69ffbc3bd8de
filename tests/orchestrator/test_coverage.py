import pytest

from orchestrator.coverage import from_dict, merge, report, to_dict
from subagents.codebase.types import Skipped
from subagents.engine import Coverage


def test_merge_is_a_union_and_round_trips() -> None:
    one = Coverage(files_read=frozenset({"a", "b"}), skipped=(Skipped("x", "binary", "1 kB"),), truncated=("s",))
    two = Coverage(files_read=frozenset({"b", "c"}), skipped=(Skipped("x", "binary", "1 kB"),), timed_out=("t",))
    both = merge([one, two])
    assert both.files_read == {"a", "b", "c"}
    assert both.skipped == (Skipped("x", "binary", "1 kB"),)
    assert from_dict(to_dict(both)) == both


def test_few_skipped_paths_are_named_and_many_become_patterns() -> None:
    many = tuple(Skipped(f"vendor/{n}.js", "vendored") for n in range(40))
    got = report(100, Coverage(skipped=(*many, Skipped("logo.png", "binary"))))
    assert [(g.path, g.reason, g.count) for g in got.skipped] == [
        ("logo.png", "binary", 1),
        ("vendor/**", "vendored", 40),
    ]


@pytest.mark.parametrize("body", [{}, {"files_read": [1]}, {**to_dict(Coverage()), "skipped": [["a", "b"]]}])
def test_anything_else_read_back_is_refused(body: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="coverage"):
        from_dict(body)
