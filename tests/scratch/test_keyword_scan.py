"""Every keyword is found wherever it stands, in every spelling, across the seams of chunks; and no other place is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scratch import keyword_scan
from scratch.keyword_scan import keywords_in
from scratch.secret_patterns import PATTERNS

KEYWORDS = sorted({(word, pattern.any_case) for pattern in PATTERNS for word in pattern.keywords})


def plainly(text: str) -> set[tuple[int, str]]:
    """By looking for each by itself."""
    found = set()
    for word, any_case in KEYWORDS:
        within = text.lower() if any_case else text
        at = within.find(word)
        while at >= 0:
            found.add((at, word))
            at = within.find(word, at + 1)
    return found


def by_scan(text: str) -> set[tuple[int, str]]:
    return {(at, keyword.text) for at, keyword in keywords_in(text) if keyword is not None}


PIECES = st.one_of(
    st.sampled_from([word for word, _ in KEYWORDS]),
    st.sampled_from([word.upper() for word, any_case in KEYWORDS if any_case]),
    st.text(alphabet="pasword_:/=-Q~9SG.éß漢😀\0\n ", max_size=9),
)


@given(st.lists(PIECES, max_size=12))
def test_the_scan_finds_what_looking_for_each_keyword_finds(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert by_scan(text) == plainly(text)


@pytest.mark.parametrize("before", range(8))
def test_seams_between_chunks_hide_nothing(before: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyword_scan, "_CHUNK", 16)
    text = "." * before + "".join(f"{word} 4539148803436467 " for word, _ in KEYWORDS)
    assert by_scan(text) == plainly(text)
    cards = [at for at, keyword in keywords_in(text) if keyword is None]
    assert {at for at in range(len(text)) if text.startswith("4539148803436467", at)} <= set(cards)


def test_keywords_are_what_the_scan_can_find() -> None:
    assert all(len(word) >= 3 and word.isascii() for word, _ in KEYWORDS)
    assert all(word == word.lower() for word, any_case in KEYWORDS if any_case)
