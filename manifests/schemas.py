"""Which documents and logs there are, and what listing has to know of a manifest without taking it apart."""

from __future__ import annotations

from typing import Literal, get_args

from manifests.envelope import Schema

MANIFEST_SCHEMA = Schema(name="leadline/manifest", version=1)
JOURNAL_SCHEMA = Schema(name="leadline/journal", version=1)
SCRATCH_SCHEMA = Schema(name="leadline/scratchpad", version=1)
TRANSCRIPT_SCHEMA = Schema(name="leadline/transcript", version=1)
EVIDENCE_SCHEMA = Schema(name="leadline/evidence", version=2)

SessionStatus = Literal["running", "interrupted", "finished", "stopped", "failed"]
"""`running` in a manifest nobody holds means that its process died. `stopped`: at a limit, with a partial answer.
`failed`: the engine failed after all retries. All but `finished` resume."""
SESSION_STATUSES: tuple[SessionStatus, ...] = get_args(SessionStatus)
