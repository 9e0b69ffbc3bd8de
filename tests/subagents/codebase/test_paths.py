"""Path keys: every path has one, no two share one, and the bytes come back."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from subagents.codebase.paths import from_key, in_scope, is_plain, to_key

AWKWARD = st.lists(
    st.sampled_from(
        [b"\\x", b"\\", b"5c", b"ff", b"80", b"x5c", b"\xff", b"\x80", b"\xc3\xa9", b"\xc3", b"a", b"/", b"\n"]
    )
).map(b"".join)
RAW = st.one_of(st.binary(), AWKWARD)


@given(RAW)
@example(b"\\xff")
@example(b"\xff")
@example(b"\\x5cxff")
def test_the_bytes_of_a_path_come_back(raw: bytes) -> None:
    key = to_key(raw)
    assert from_key(key) == raw
    assert json.loads(json.dumps(key)) == key
    key.encode()


@given(RAW, RAW)
@example(b"\\xff", b"\xff")
@example(b"\\x5cxff", b"\\xff")
def test_two_paths_never_share_a_key(one: bytes, other: bytes) -> None:
    assert (to_key(one) == to_key(other)) == (one == other)


@given(st.text().filter(lambda text: "\\" not in text and text.isprintable()))
def test_an_ordinary_path_is_its_own_key(text: str) -> None:
    assert to_key(text.encode()) == text


def test_a_byte_that_is_no_utf8_is_written_as_an_escape() -> None:
    assert to_key(b"caf\xe9.py") == r"caf\xe9.py"
    assert to_key(rb"back\slash") == r"back\slash"


@pytest.mark.parametrize(
    "raw", [b"", b".", b"..", b"/etc", b"a//b", b"a/", b"a/../b", b"./a", b"a/.", b"a\0b", b"../a"]
)
def test_paths_that_could_leave_are_not_plain(raw: bytes) -> None:
    assert not is_plain(raw)


@pytest.mark.parametrize("raw", [b"a", b"...", b"..a/b..", b"a/.b/c", b"-x", b" ", b"\n"])
def test_odd_but_harmless_paths_are_plain(raw: bytes) -> None:
    assert is_plain(raw)


def test_scope_is_by_whole_parts() -> None:
    assert in_scope("a/b.py", ("a",))
    assert in_scope("a/b.py", ("a/b.py",))
    assert not in_scope("ab/c.py", ("a",))
    assert in_scope("anything", ())
