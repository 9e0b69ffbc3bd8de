"""Why the cache was not read: which block of the prefix changed, and at which byte.

Works on fingerprints of the last request, not on its bytes, so it costs a hash a block and a few bytes of memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import orjson

from subagents.claude.messages import Param, Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Print:
    """One block: where it stands, its hash, and its bytes while they are few."""

    where: str
    digest: bytes
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixChange:
    """The first difference between two requests that should share a prefix."""

    where: str
    byte: int
    before: str
    after: str

    @property
    def line(self) -> str:
        return f"{self.where} changed at byte {self.byte}: {self.before!r} became {self.after!r}"


def prints_of(request: Request) -> tuple[Print, ...]:
    """Fingerprints of all blocks in prefix order, cache marks left out (they may move)."""
    return tuple(
        Print(where=where, digest=hashlib.blake2b(data, digest_size=16).digest(), data=data)
        for where, data in _blocks(request.body)
    )


def first_change(before: tuple[Print, ...], after: tuple[Print, ...]) -> PrefixChange | None:
    """The first block of `before` that `after` does not repeat; None when `after` only continues."""
    for index, old in enumerate(before):
        if index >= len(after):
            return PrefixChange(where=old.where, byte=0, before=_excerpt(old.data, 0), after="")
        new = after[index]
        if old.digest != new.digest:
            byte = next(
                (n for n, (a, b) in enumerate(zip(old.data, new.data, strict=False)) if a != b),
                min(len(old.data), len(new.data)),
            )
            return PrefixChange(
                where=new.where, byte=byte, before=_excerpt(old.data, byte), after=_excerpt(new.data, byte)
            )
    return None


def _excerpt(data: bytes, byte: int) -> str:
    return data[max(0, byte - 10) : byte + 30].decode("utf-8", "replace")


def _blocks(body: Param) -> Iterator[tuple[str, bytes]]:
    for tool in body.get("tools", ()):
        yield f"tool {tool['name']}", _data(tool)
    for number, block in enumerate(body.get("system", ())):
        yield f"system.{number}", _data(block)
    for number, message in enumerate(body["messages"]):
        for index, block in enumerate(message["content"]):
            yield f"messages.{number}.content.{index} ({message['role']} {block['type']})", _data(block)


def _data(block: Param) -> bytes:
    if "cache_control" in block:
        block = {name: value for name, value in block.items() if name != "cache_control"}
    return orjson.dumps(block)
