from hypothesis import given
from hypothesis import strategies as st

from orchestrator.terminal import printable, printable_line


def test_escape_sequences_and_bidirectional_controls_are_shown_not_obeyed() -> None:
    assert printable("a\x1b[31mred\u202egnp.exe\x9b1m\r") == "a\\x1b[31mred\\u202egnp.exe\\x9b1m\\x0d"


def test_lines_and_tabs_stay_in_text_and_are_escaped_in_a_line() -> None:
    assert printable("a\n\tb") == "a\n\tb"
    assert printable_line("a\n\tb") == "a\\n\\tb"


@given(st.text())
def test_nothing_unprintable_is_left(text: str) -> None:
    shown = printable_line(text)
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 or c in "\u202a\u202e\u2066\u2069\u200b\ufeff" for c in shown)
    shown.encode()
