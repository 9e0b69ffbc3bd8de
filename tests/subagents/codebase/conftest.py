from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from subagents.codebase.snapshot import FrozenSnapshot, open_snapshot

Open = Callable[..., FrozenSnapshot]


@pytest.fixture
def opened() -> Iterator[Open]:
    """`open_snapshot` whose snapshots are closed when the test ends."""
    with ExitStack() as stack:

        def open_it(path: Path, **options: Any) -> FrozenSnapshot:
            return stack.enter_context(open_snapshot(path, **options))

        yield open_it
