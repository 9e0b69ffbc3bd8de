"""What is called clean is what redaction would leave as it is: skipping it can let no secret through."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scratch.redaction import redact_text
from subagents.index.clean import are_clean
from tests.scratch.test_redaction import AROUND, CODE, everything


def clean(texts: list[str]) -> list[bool]:
    return are_clean(texts, [text.encode("utf-8", "replace") for text in texts])


@pytest.mark.parametrize("around", AROUND)
def test_no_text_with_a_secret_is_called_clean(around: str) -> None:
    texts = [around.replace("{{", "{").replace("}}", "}").replace("{}", secret) for secret in everything()]
    assert not any(clean(texts))


def test_code_is_called_clean_however_many_texts_are_looked_at_together() -> None:
    assert all(clean(CODE))
    assert clean([]) == []
    assert clean(["", "\u00e9", ""]) == [True] * 3
    big = ["x = 1\n" * 200_000, "y"]
    assert clean([*big, everything()[0], *big]) == [True, True, False, True, True]


def test_what_was_redacted_before_is_left_to_redaction() -> None:
    assert clean(["password = '[redacted:assigned_secret]'"]) == [False]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.lists(
            st.sampled_from([*everything(), *CODE]) | st.text(max_size=12) | st.sampled_from("\n =:'\"-_.@/\u00e9"),
            max_size=6,
        ).map("".join),
        max_size=5,
    )
)
def test_whatever_is_called_clean_is_what_redaction_leaves_alone(texts: list[str]) -> None:
    for text, is_clean in zip(texts, clean(texts), strict=True):
        if is_clean:
            assert redact_text(text) == (text, {})
