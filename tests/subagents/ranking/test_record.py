"""What ranking keeps of a file, against the plainest way to count the same."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subagents.index.rows import SymbolRow
from subagents.ranking import vocabulary
from subagents.ranking.lexing import stretches
from subagents.ranking.record import Source, decode, encode_many
from subagents.ranking.words import keys

WORDS = ["get", "getUser", "HTTPServer2", "__init__", "x", "größe", "配置文件", "9lives", "—", "naïve_word", "of"]
PIECES = [*WORDS, " ", "\n", "'", '"', '"""', "#", "//", "/*", "*/", "`", "\\", ".", "\t"]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=60).map("".join)
LANGUAGES = st.sampled_from(["python", "go", "javascript", "ruby", "markdown", None])
DEFINED: SymbolRow = ("getUser", "Shop.getUser", "method", 1, 2, -1, "", "", ())


def counted(source: Source) -> tuple[dict[int, list[int]], list[tuple[int, int]]]:
    """Occurrences of each term in code, comments and strings, and (term, line) pairs, one word after another."""
    counts: dict[int, list[int]] = {}
    pairs: set[tuple[int, int]] = set()
    ends, fields = stretches(source.text.encode(), source.language)
    for match in re.finditer(r"\w+", source.text):
        at = len(source.text[: match.start()].encode())
        field = int(next(field for end, field in zip(ends, fields, strict=True) if at < end))
        for key in keys(match[0].lstrip("0123456789")):
            counts.setdefault(key, [0, 0, 0])[field] += 1
            pairs.add((key, source.text.count("\n", 0, match.start()) + 1))
    return counts, sorted(pairs)


@given(TEXTS, LANGUAGES)
def test_each_word_is_counted_in_its_field_and_on_its_line(text: str, language: str | None) -> None:
    source = Source(text, language, [])
    record = decode(encode_many([source])[0])
    counts, pairs = counted(source)
    assert {key: row[:3] for key, row in zip(record.keys.tolist(), record.counts.tolist(), strict=True)} == counts
    starts = [0, *record.ends.tolist()]
    found = [
        (key, line) for n, key in enumerate(record.keys.tolist()) for line in record.lines[starts[n] : starts[n + 1]]
    ]
    assert found == pairs
    assert record.lengths[:3] == tuple(sum(row[field] for row in counts.values()) for field in range(3))
    on_line = Counter(text.count("\n", 0, match.start()) + 1 for match in re.finditer(r"\w+", text))
    assert record.words.tolist() == [sum(on_line[n] for n in range(1, upto + 1)) for upto in range(len(record.words))]


@given(st.lists(st.tuples(TEXTS, LANGUAGES, st.sampled_from([[], [DEFINED], [DEFINED] * 3])), min_size=1, max_size=9))
def test_a_record_depends_on_its_own_file_alone(files: list[tuple[str, str | None, list[SymbolRow]]]) -> None:
    sources = [Source(*file) for file in files]
    assert encode_many(sources) == [encode_many([source])[0] for source in sources]


def test_more_files_than_fit_into_one_pass_are_all_recorded() -> None:
    sources = [Source(f"word{n} shared", "python", []) for n in range(200)]
    assert encode_many(sources) == [encode_many([source])[0] for source in sources]


def test_forgetting_the_vocabulary_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [" ".join(f"name{n}_{m}" for m in range(300)) for n in range(20)]
    expected = [encode_many([Source(text, "python", [])])[0] for text in texts]
    monkeypatch.setattr(vocabulary, "_WORDS_LIMIT", 500)
    assert [encode_many([Source(text, "python", [])])[0] for text in texts] == expected


def test_a_word_longer_than_any_buffer_is_one_word() -> None:
    long = "a" * 300_000
    record = decode(encode_many([Source(f"x {long} y\nzebra", "python", [])])[0])
    assert record.words.tolist() == [0, 3, 4]


def test_text_without_words_has_a_record() -> None:
    for text in ("", "\n\n", "+ - *"):
        record = decode(encode_many([Source(text, "python", [])])[0])
        assert len(record.keys) == 0
        assert record.line_count == text.count("\n") + 1
