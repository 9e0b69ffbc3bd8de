"""What the index stores for ranking beside its own tables. Cheap to import: it is asked for at each open."""

from __future__ import annotations

from subagents.index.extras import BlobExtra

EXTRA = BlobExtra(
    name="terms",
    version=3,
    extract="subagents.ranking.record:extract",
    finish="subagents.ranking.postings:finish",
)
