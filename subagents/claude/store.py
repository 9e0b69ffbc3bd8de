"""Where a Claude engine keeps what is durable: transcripts, evidence, redaction, all in one session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from manifests.sessions import TRANSCRIPT_SCHEMA, Session
from scratch.evidence import EvidenceStore
from subagents.claude.transcript import Log, redact_record


class EngineStore(Protocol):
    """Four things; a session has them, and so has a test."""

    def log(self, task: str) -> Log: ...
    def records(self, task: str) -> Iterable[Mapping[str, Any]]:
        """All records of a task's transcript so far; none if there is no transcript."""
        ...

    def evidence(self, reference: str) -> bytes: ...
    def redact(self, text: str) -> str: ...


class Redacting(Protocol):
    """Source: scratch.redaction.Redactor."""

    def text(self, text: str) -> str: ...
    def json(self, value: object) -> object: ...


@dataclass(slots=True)
class SessionEngineStore:
    """One session's store. `redactor` is the session's, so that what is counted is counted once for all."""

    session: Session
    store: EvidenceStore
    redactor: Redacting

    def log(self, task: str) -> Log:
        return self.session.log(
            f"transcripts/{task}.jsonl",
            TRANSCRIPT_SCHEMA,
            redact=lambda body: redact_record(body, self.redactor.json),
        )

    def records(self, task: str) -> Iterable[Mapping[str, Any]]:
        try:
            for record in self.session.read_log(f"transcripts/{task}.jsonl", TRANSCRIPT_SCHEMA):
                yield record.body
        except FileNotFoundError:
            return

    def evidence(self, reference: str) -> bytes:
        return self.store.get(reference)

    def redact(self, text: str) -> str:
        return self.redactor.text(text)
