import pytest
from hypothesis import given
from hypothesis import strategies as st

from subagents.ranking.words import all_keys, key_of, keys, parts, spell, stem, words_of


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("parse_HTTPHeader2", ["parse", "http", "header", "2"]),
        ("getURLs", ["get", "ur", "ls"]),
        ("snake_case_name", ["snake", "case", "name"]),
        ("XMLHttpRequest", ["xml", "http", "request"]),
        ("__init__", ["init"]),
        ("plain", ["plain"]),
    ],
)
def test_identifiers_are_split_where_people_read_a_boundary(word: str, expected: list[str]) -> None:
    assert parts(word) == expected


@pytest.mark.parametrize(
    "family",
    [
        ("writer", "writers", "writes", "writing"),
        ("serialization", "serialize", "serializer", "serialized"),
        ("query", "queries"),
        ("setting", "settings"),
        ("configuration", "configurations"),
    ],
)
def test_forms_of_one_word_share_a_stem(family: tuple[str, ...]) -> None:
    assert len({stem(word) for word in family}) == 1


def test_a_word_of_several_parts_is_also_a_term_as_a_whole() -> None:
    assert "=getuser" in spell("getUser")
    assert key_of("=get_user") in keys("get_user")
    assert not any(term.startswith("=") for term in spell("user"))


def test_the_word_in_camel_case_shares_its_parts_with_the_word_in_snake_case() -> None:
    assert set(spell("load_settings")) - {"=load_settings"} == set(spell("loadSettings")) - {"=loadsettings"}


def test_stop_words_are_no_terms_on_their_own() -> None:
    assert all_keys(words_of("what is the of and")) == []


def test_text_without_spaces_becomes_pairs_of_characters() -> None:
    assert spell("配置文件") == ["配置", "置文", "文件"]
    assert set(keys("配置")) <= set(keys("配置文件"))


@given(st.text(max_size=60))
def test_any_text_gives_terms_that_do_not_change(text: str) -> None:
    first = all_keys(words_of(text))
    assert first == all_keys(words_of(text))
    assert all(0 <= key < 2**32 for key in first)
