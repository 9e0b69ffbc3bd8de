from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subagents.ranking.lexing import CODE, COMMENT, STRING, stretches

LANGUAGES = [
    "python",
    "c",
    "go",
    "rust",
    "java",
    "javascript",
    "typescript",
    "ruby",
    "php",
    "bash",
    "markdown",
    None,
    "cobol",
]


def field_of(text: str, word: str, language: str | None) -> int:
    data = text.encode()
    at = data.index(word.encode())
    ends, fields = stretches(data, language)
    return int(next(what for end, what in zip(ends, fields, strict=True) if at < end))


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("python", 'x = "WORD"  # other', STRING),
        ("python", "x = 'a\\'b'  # WORD", COMMENT),
        ("python", 'def f():\n    """Says "hi" to WORD."""\n', COMMENT),
        ("python", 'x = """a""" + WORD', CODE),
        ("go", "var x = `raw WORD`", STRING),
        ("go", "x := 1 // WORD", COMMENT),
        ("c", "/* a * b WORD */ int x;", COMMENT),
        ("c", "/* a */ int WORD;", CODE),
        ("rust", "fn f<'a>(x: &'a str) { WORD }", CODE),
        ("javascript", "const x = 'it\\'s WORD'", STRING),
        ("ruby", 'x = "#{y} WORD" # other', STRING),
        ("markdown", "# Title\nWORD", COMMENT),
    ],
)
def test_words_are_told_apart_by_where_they_stand(language: str | None, text: str, expected: int) -> None:
    assert field_of(text, "WORD", language) == expected


@given(st.text(alphabet="ab\"'`/*#\\\n é", max_size=80), st.sampled_from(LANGUAGES))
def test_stretches_cover_any_text_in_order(text: str, language: str | None) -> None:
    data = text.encode()
    ends, fields = stretches(data, language)
    assert len(ends) == len(fields)
    assert ends[-1] == len(data)
    assert all(before <= after for before, after in pairwise(ends))
    assert set(fields.tolist()) <= {CODE, COMMENT, STRING}


def test_an_unclosed_literal_takes_linear_time() -> None:
    for language in LANGUAGES:
        for text in (b'"' * 100_000, b"'" * 100_000, b"/*" * 50_000, b"`" * 100_001, b'"""' + b"a\\" * 50_000):
            stretches(text, language)
