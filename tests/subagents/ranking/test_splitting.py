"""Words taken apart many at a time give the terms they give one by one."""

from __future__ import annotations

import string

from hypothesis import example, given
from hypothesis import strategies as st

from subagents.ranking.splitting import Splitter
from subagents.ranking.words import keys_afresh

WORD = st.text(string.ascii_letters + string.digits + "_", max_size=14) | st.text(
    "aAbB1_\u00e9\u4e2d\u3042", max_size=9
)


@given(st.lists(WORD, max_size=12))
@example(["getHTTPResponse", "HTTPServer2", "parse_header", "X", "__init__", "", "_", "a" * 300, "1", "12ab"])
@example(["\u4e2d\u6587\u5b57", "caf\u00e9Bar", "ab"])
def test_many_words_give_the_terms_that_each_gives_by_itself(words: list[str]) -> None:
    splitter = Splitter()
    for _ in range(2):  # the parts are new to it, then known
        sizes, keys = splitter.terms([word.encode() for word in words])
        ends = sizes.cumsum()
        found = [tuple(keys[end - size : end].tolist()) for end, size in zip(ends, sizes, strict=True)]
        assert found == [keys_afresh(word.lstrip(string.digits)) for word in words]
