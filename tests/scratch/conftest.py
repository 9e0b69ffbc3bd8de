"""A small snapshot in memory, and sessions to record into."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from manifests.sessions import Session, SessionStore
from scratch.evidence import EvidenceStore
from scratch.recorder import FindingRegistry, TaskRecorder
from scratch.redaction import Redactor
from tests.faults.places import quick_folder


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    with quick_folder() as folder:
        yield folder


class NoText(Exception):
    """As the code base's own `CannotRead`."""


@dataclass(frozen=True)
class Text:
    blob: str
    lines: tuple[str, ...]


@dataclass
class MemorySource:
    """Fits `scratch.source.Source`."""

    contents: dict[str, str | None] = field(default_factory=dict)

    def files(self) -> Mapping[str, Text]:
        return {path: self._text(content) for path, content in self.contents.items()}

    @staticmethod
    def _text(content: str | None) -> Text:
        data = (content or "").encode()
        return Text(hashlib.sha1(b"blob %d\0%b" % (len(data), data)).hexdigest(), tuple((content or "").split("\n")))

    def text(self, path: str) -> Text:
        content = self.contents[path]
        if content is None:
            raise NoText("binary")
        return self._text(content)


APP = "\n".join(f"line {n} of the application does step {n}" for n in range(1, 41))


@pytest.fixture
def source() -> MemorySource:
    return MemorySource(
        {
            "src/app.py": APP,
            "src/util/text.py": "def fold(text):\n    return   text\n\n\nclass A:\n    pass",
            "src/logo.png": None,
            "docs/app.md": "# App\n\nIt   does\nthings.",
            "odd: name 1.py": "x = 1\ny = 2",
        }
    )


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    return SessionStore(tmp_path / "state", redact=Redactor().json)


@pytest.fixture
def session(store: SessionStore) -> Iterator[Session]:
    with store.create("repo-1") as session:
        yield session


MakeRecorder = Callable[..., TaskRecorder]


@pytest.fixture
def make_recorder(session: Session, source: MemorySource) -> MakeRecorder:
    """Recorders of one session share a registry unless one is given."""
    redactor = Redactor()
    shared = FindingRegistry()

    def make(task: str = "t0", registry: FindingRegistry | None = None) -> TaskRecorder:
        return TaskRecorder(
            session,
            task=task,
            phase=1,
            source=source,
            registry=registry or shared,
            evidence=EvidenceStore(session, redact=redactor.data),
            redactor=redactor,
            cannot_read=NoText,
        )

    return make
