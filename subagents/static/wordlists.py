"""Word lists in source, one string instead of hundreds of quoted words."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())
