import pytest
from hypothesis import given
from hypothesis import strategies as st

from subagents.ranking.query import TERMS_LIMIT, Frame, parse
from subagents.ranking.words import keys


def weight_of(text: str, word: str) -> float:
    wanted = set(keys(word))
    return max((term.weight for term in parse(text).terms if term.key in wanted), default=0.0)


def test_the_first_line_counts_more_than_prose_and_prose_more_than_pasted_output() -> None:
    text = "Session expires\n\nThe cookie is dropped.\n\n```\nprint(response)\n```\n"
    assert weight_of(text, "session") > weight_of(text, "cookie") > weight_of(text, "response") > 0


@pytest.mark.parametrize("text", ["", " \n\t ", "the of and", "!!! ??? ...", "```"])
def test_a_question_without_words_is_empty(text: str) -> None:
    assert parse(text).is_empty


def test_a_term_is_called_by_the_part_of_the_name_it_stands_for() -> None:
    said = {term.word for term in parse("FooBarDispatcher").terms}
    assert said == {"foo", "bar", "dispatcher", "FooBarDispatcher"}


def test_an_ordinary_word_is_a_name_where_nothing_else_is_left() -> None:
    assert set(parse("where is get?").identifiers) == {"get"}
    assert "get" not in parse("where is get_page?").identifiers


def test_identifiers_are_found_in_every_usual_spelling() -> None:
    found = parse(
        "`retry` fails: fooBar, HTTPServer, max_retries, Owner.member, a::b_c, call_it(), --dry-run, __call__"
    )
    assert {
        "retry",
        "fooBar",
        "HTTPServer",
        "max_retries",
        "Owner",
        "member",
        "b_c",
        "call_it",
        "dry_run",
        "__call__",
    } <= set(found.identifiers)
    assert "fails" not in found.identifiers
    assert "Owner.member" in found.pairs
    assert "dry-run" in found.options


@pytest.mark.parametrize(
    ("text", "frame"),
    [
        (
            '  File "/usr/lib/pkg/core/run.py", line 12, in start\n',
            Frame(path="/usr/lib/pkg/core/run.py", line=12, name="start"),
        ),
        ("\tat com.acme.shop.Cart.add(Cart.java:31)", Frame(path="com/acme/shop/Cart.java", line=31, name="add")),
        ("    at Router.match (/app/lib/router.js:10:5)", Frame(path="/app/lib/router.js", line=10, name="match")),
        ("    at /app/lib/router.ts:10:5", Frame(path="/app/lib/router.ts", line=10, name="")),
        ("goroutine 1:\n\t/src/net/dial.go:77 +0x1b", Frame(path="/src/net/dial.go", line=77, name="")),
        ("app/models/user.rb:5:in `save!'", Frame(path="app/models/user.rb", line=5, name="save!")),
        ("thread 'main' panicked at src/lib.rs:9:1", Frame(path="src/lib.rs", line=9, name="")),
        ("see src/server.c:120", Frame(path="src/server.c", line=120, name="")),
        ("lib/shop.ml:4 and lib/shop.ex:2", Frame(path="lib/shop.ml", line=4, name="")),
    ],
)
def test_entries_of_tracebacks_are_read_in_the_common_languages(text: str, frame: Frame) -> None:
    assert frame in parse(text).frames


def test_files_and_modules_are_found_and_addresses_are_not_taken_for_them() -> None:
    found = parse("in lib/app/cli.py and acme.core.run, see https://example.org/a/page.html?x=conf.py")
    assert found.files == ("lib/app/cli.py",)
    assert "acme.core.run" in found.dotted


@pytest.mark.parametrize(
    ("url", "files", "frames", "dotted"),
    [
        ("https://git.example.org/a/b/blob/main/src/b/run.py#L57-L60", ("src/b/run.py",), [("src/b/run.py", 57)], ()),
        ("(https://git.example.org/a/b/-/blob/v1/lib/b.rb?plain=1#L5)", ("lib/b.rb",), [("lib/b.rb", 5)], ()),
        ("https://git.example.org/a/b/src/branch/main/cmd/b.go", ("cmd/b.go",), [], ()),
        ("see https://docs.example.org/api/#acme.App.url_for.", (), [], ("acme.App.url_for",)),
        ("see https://git.example.org/a/b/issues/5#issuecomment-77", (), [], ()),
        ("see https://example.org/a/page.html?x=conf.py", (), [], ()),
    ],
)
def test_an_address_says_the_file_line_or_name_it_points_at(
    url: str, files: tuple[str, ...], frames: list[tuple[str, int]], dotted: tuple[str, ...]
) -> None:
    found = parse(url)
    assert found.files == files
    assert set(dotted) <= set(found.dotted)
    assert [(frame.path, frame.line) for frame in found.frames] == frames
    assert not found.words & {"git", "example", "org", "blob", "issues", "html"}


def test_a_question_that_is_only_an_address_is_about_its_words() -> None:
    assert {"guide", "sessions"} <= parse("https://docs.example.org/guide/sessions").words


def test_a_question_about_documents_configuration_or_tests_is_noticed() -> None:
    assert parse("where is the documentation of routing").wants_docs
    assert parse("which settings steer the cache").wants_config
    assert parse("flaky test in scheduler").wants_tests
    plain = parse("how does routing work")
    assert not (plain.wants_docs or plain.wants_config or plain.wants_tests)


def test_a_question_of_a_hundred_kilobytes_is_cut_to_its_heaviest_terms() -> None:
    text = "Broken frobnicate\n" + "\n".join(f"word{number} other{number}" for number in range(6000))
    found = parse(text)
    assert len(found.terms) == TERMS_LIMIT
    assert set(keys("frobnicate")) <= {term.key for term in found.terms[:5]}


@given(st.text(max_size=400))
def test_any_text_can_be_taken_apart(text: str) -> None:
    found = parse(text)
    assert len({term.key for term in found.terms}) == len(found.terms)
    assert all(term.weight > 0 for term in found.terms)


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("Wo wird die Sitzung für den Nutzer signiert?", {"Sitzung", "Nutzer", "signiert"}),
        ("Où est la configuration de session lue ?", {"configuration", "session", "lue"}),
        ("Где и как подписывается сессия?", {"подписывается", "сессия"}),
        ("¿Dónde se lee la configuración de la sesión?", {"lee", "configuración", "sesión"}),
    ],
)
def test_the_grammar_of_other_languages_is_nothing_to_look_for(question: str, left: set[str]) -> None:
    assert parse(question).words == left


def test_in_english_the_same_words_may_be_names() -> None:
    assert {"die", "handler"} <= {term.word for term in parse("let the die handler exit").terms}
