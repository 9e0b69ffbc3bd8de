"""Typed reading of parsed JSON: what is no number that can be counted with is refused where it stands."""

from __future__ import annotations

import math

import pytest

from manifests.fields import Fields, Malformed


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, True, "1", None])
def test_numbers_are_finite(value: object) -> None:
    with pytest.raises(Malformed, match="usage"):
        Fields({"usage": {"tokens": value}}, "x").numbers("usage", limit=5)


@pytest.mark.parametrize("value", [math.inf, 2.5, 1e300, -1, True])
def test_counts_are_whole_and_not_negative(value: object) -> None:
    with pytest.raises(Malformed, match="redacted"):
        Fields({"redacted": {"key": value}}, "x").counts("redacted", limit=5)


def test_counts_are_given_as_they_stand() -> None:
    assert Fields({"redacted": {"key": 3}}, "x").counts("redacted", limit=5) == {"key": 3}
