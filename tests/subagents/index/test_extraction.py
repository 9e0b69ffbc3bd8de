"""What one file yields, however odd its bytes: never a crash, lines as git counts them."""

from __future__ import annotations

import time

import pytest

from subagents.index.extract import extract
from subagents.index.languages import GRAMMARS
from subagents.index.records import decode_strings, decode_symbols, numbers, unseal
from subagents.index.worker import PARSE_LIMIT_BYTES, process

SAMPLE = b"class Shop:\n    def sell(self, item):\n        return pay(item)\n"


def symbols_of(path: str, data: bytes) -> list[tuple[str, int, int]]:
    record, _ = process(path, data)
    assert record.is_read, record
    return [(row[1], row[3], row[4]) for row in decode_symbols(record.symbols)]


EXPECTED = [("Shop", 1, 3), ("Shop.sell", 2, 3)]


@pytest.mark.parametrize(
    "data",
    [
        SAMPLE,
        b"\xef\xbb\xbf" + SAMPLE,
        SAMPLE.replace(b"\n", b"\r\n"),
        SAMPLE.decode().encode("utf-16"),
        SAMPLE.rstrip(b"\n"),
        b"# caf\xe9 in Latin-1".replace(b"\n", b"") + b"\n" + SAMPLE,
    ],
    ids=["plain", "bom", "crlf", "utf16", "no-final-newline", "latin1"],
)
def test_encoding_and_line_ends_do_not_matter(data: bytes) -> None:
    shift = 1 if data.startswith(b"# caf") else 0
    assert symbols_of("a.py", data) == [(name, start + shift, end + shift) for name, start, end in EXPECTED]


def test_empty_file_is_read_and_holds_nothing() -> None:
    record, _ = process("a.py", b"")
    assert (record.is_read, record.lines, record.reason) == (True, 0, "")
    assert decode_symbols(record.symbols) == []


def test_definitions_around_a_syntax_error_are_kept() -> None:
    broken = b"def before():\n    pass\n\nclass A(:\n    def x(self: pass\n\ndef after():\n    pass\n"
    names = [name for name, _, _ in symbols_of("a.py", broken)]
    assert {"before", "after"} <= {name.rpartition(".")[2] for name in names}


@pytest.mark.parametrize("language", sorted(GRAMMARS))
def test_every_grammar_survives_rubbish(language: str) -> None:
    for data in (
        b"",
        b"\n",
        b"\xff\xfe\x00",
        b"((((",
        b'"unterminated',
        b"\x00" * 10,
        "ünïcødé ∀".encode(),
        b"}" * 5000,
    ):
        extract(data.decode("utf-8", "replace").encode(), language)


@pytest.mark.parametrize(("language", "opening"), [("python", b"("), ("javascript", b"["), ("c", b"{"), ("rust", b"(")])
def test_deep_nesting_costs_time_but_no_stack(language: str, opening: bytes) -> None:
    start = time.monotonic()
    extract(opening * 8_000, language)
    assert time.monotonic() - start < 60


def test_deeply_nested_functions_are_all_found() -> None:
    depth = 90
    data = b"".join(b" " * n + b"def f%d():\n" % n for n in range(depth)) + b" " * depth + b"pass\n"
    found = symbols_of("a.py", data)
    assert len(found) == depth
    assert found[-1][0].count(".") == depth - 1


def test_file_beyond_the_limit_is_not_parsed_and_says_so() -> None:
    record, _ = process("a.py", b"x = 1\n" * (PARSE_LIMIT_BYTES // 6 + 1))
    assert (record.is_read, record.reason) == (False, "too_large")


def test_language_without_grammar_is_read_as_words_and_says_so() -> None:
    record, _ = process("a.lua", b"local function f() end\n")
    assert (record.is_read, record.language, record.reason) == (True, "lua", "no_grammar")


def test_script_is_told_by_its_first_line() -> None:
    record, _ = process("bin/tool", b"#!/usr/bin/env python3\ndef main():\n    pass\n")
    assert record.language == "python"
    assert [row[1] for row in decode_symbols(record.symbols)] == ["main"]


@pytest.mark.parametrize(
    ("text", "language"), [(b"namespace a { class B {}; }\n", "cpp"), (b"struct a { int b; };\n", "c")]
)
def test_header_is_c_or_cplusplus_by_what_it_says(text: bytes, language: str) -> None:
    assert process("a.h", text)[0].language == language


def test_receivers_are_brought_to_a_form_that_resolves() -> None:
    data = b"f(a(1, (2))).b()\nx[0].c()\nself.d(e).g()\n"
    record, _ = process("a.py", data)
    strings, flat = decode_strings(record.strings), numbers(unseal(record.references))
    calls = {(strings[flat[n + 2] >> 3], strings[flat[n + 1]]) for n in range(0, len(flat), 3) if flat[n + 2] & 7 == 0}
    assert {("f()", "b"), ("?", "c"), ("self.d()", "g")} <= calls
