"""Which blobs hold a term, and how often: an inverted table beside the index, grown segment by segment.

Each build that adds blobs writes one segment: the postings of those blobs, sorted by term and cut into buckets by the
term's leading bits, one row a bucket. A reader takes the buckets of its terms out of every segment and drops what
belongs to blobs its snapshot does not use; sums do not depend on how blobs are spread over segments. When there are too
many segments, all but the largest are merged into one out of the stored records; all are, when too many postings are of
blobs that are gone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from subagents.ranking import listing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from subagents.index.extras import Published

SCHEMA = """
CREATE TABLE IF NOT EXISTS terms_segment (
    id INTEGER PRIMARY KEY, bits INTEGER NOT NULL, blobs INTEGER NOT NULL, lengths BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS terms_bucket (key INTEGER PRIMARY KEY, data BLOB NOT NULL);
"""
_SEGMENTS = 8
_BITS = 14
_POSTINGS_A_BUCKET = 512
_BLOBS_AT_ONCE = 2_000


@dataclass(frozen=True, slots=True)
class Postings:
    """Parallel arrays, one entry for a term in a blob. `term` is a place in the list of keys asked for."""

    term: NDArray[np.int64]
    blob: NDArray[np.int64]
    counts: NDArray[np.uint8]


def finish(published: Published) -> None:
    """Write the segment of the blobs that were added; called inside the transaction that publishes the snapshot."""
    connection = published.connection
    for statement in SCHEMA.split(";"):
        connection.execute(statement)
    if published.edited is None or not listing.replace_blobs(connection, published.edited):
        listing.update(connection)
    gone = set(published.dropped)
    live = connection.execute("SELECT count(*) FROM blob WHERE is_read = 1").fetchone()[0] - len(gone)
    sizes = connection.execute("SELECT id, blobs FROM terms_segment ORDER BY blobs DESC, id").fetchall()
    stored = sum(size for _, size in sizes) + len(published.added)
    added = set(published.added)
    if stored > 2 * live + 1000:
        merged = [segment for segment, _ in sizes]
        added = {row[0] for row in connection.execute("SELECT blob FROM extra_terms")}
    elif len(sizes) + bool(added) > _SEGMENTS:  # the largest stays: reading it all again would cost more than the rest
        merged = [segment for segment, _ in sizes[1:]]
        added.update(_blobs(connection, merged))
    else:
        merged = []
    for segment in merged:
        connection.execute("DELETE FROM terms_segment WHERE id = ?", (segment,))
        low = segment << _BITS
        connection.execute("DELETE FROM terms_bucket WHERE key BETWEEN ? AND ?", (low, low | (1 << _BITS) - 1))
    if added - gone:
        number = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM terms_segment").fetchone()[0]
        _write(connection, number, sorted(added - gone))


def _blobs(connection: sqlite3.Connection, chosen: Sequence[int]) -> list[int]:
    """The blobs that some segments hold."""
    import numpy as np

    found: list[int] = []
    for segment in chosen:
        row = connection.execute("SELECT lengths FROM terms_segment WHERE id = ?", (segment,)).fetchone()
        found += np.frombuffer(row[0], "<u4").reshape(-1, 5)[:, 0].tolist()
    return found


def _write(connection: sqlite3.Connection, segment: int, blobs: Sequence[int]) -> None:
    import numpy as np

    from subagents.ranking.record import decode

    keys: list[NDArray[np.uint32]] = []
    counts: list[NDArray[np.uint8]] = []
    sizes: list[int] = []
    numbers: list[int] = []
    lengths: list[tuple[int, int, int, int]] = []
    for blob, data in _stored(connection, blobs):
        record = decode(data)
        keys.append(record.keys)
        counts.append(record.counts)
        sizes.append(len(record.keys))
        numbers.append(blob)
        lengths.append(record.lengths)
    if not numbers:
        return
    all_keys = np.concatenate(keys)
    order = np.argsort(all_keys, kind="stable")
    all_keys = all_keys[order]
    rows = np.empty(len(order), posting_type())
    rows["key"] = all_keys
    rows["blob"] = np.repeat(np.array(numbers, np.uint32), sizes)[order]
    rows["counts"] = np.concatenate(counts)[order]
    bits = max(0, min(_BITS, (len(order) // _POSTINGS_A_BUCKET).bit_length()))
    bucket_of = (all_keys >> np.uint32(32 - bits)).astype(np.int64) if bits else np.zeros(len(order), np.int64)
    buckets, begins = np.unique(bucket_of, return_index=True)
    edges = [*begins.tolist(), len(order)]
    table = np.column_stack([np.array(numbers, np.uint32), np.array(lengths, np.uint32)])
    connection.execute(
        "INSERT INTO terms_segment VALUES (?, ?, ?, ?)", (segment, bits, len(numbers), table.astype("<u4").tobytes())
    )
    connection.executemany(
        "INSERT INTO terms_bucket VALUES (?, ?)",
        (
            (segment << _BITS | bucket, rows[edges[at] : edges[at + 1]].tobytes())
            for at, bucket in enumerate(buckets.tolist())
        ),
    )


def _stored(connection: sqlite3.Connection, blobs: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    wanted = set(blobs)
    if not wanted:
        return
    low, high = min(wanted), max(wanted)
    for blob, data in connection.execute(
        "SELECT blob, data FROM extra_terms WHERE blob BETWEEN ? AND ? ORDER BY blob", (low, high)
    ):
        if blob in wanted:
            yield blob, data


def posting_type() -> np.dtype[np.void]:
    import numpy as np

    return np.dtype([("key", "<u4"), ("blob", "<u4"), ("counts", "u1", (4,))])


def segments(connection: sqlite3.Connection) -> list[tuple[int, int]]:
    """(id, bits) of each segment."""
    return connection.execute("SELECT id, bits FROM terms_segment ORDER BY id").fetchall()


def lengths(connection: sqlite3.Connection) -> NDArray[np.uint32]:
    """One row a blob: its number and the lengths of its four fields."""
    import numpy as np

    tables = [row[0] for row in connection.execute("SELECT lengths FROM terms_segment ORDER BY id")]
    return np.frombuffer(b"".join(tables), "<u4").reshape(-1, 5)


def read(connection: sqlite3.Connection, parts: Sequence[tuple[int, int]], keys: Sequence[int]) -> Postings:
    """Postings of `keys` (distinct) in all segments."""
    import numpy as np

    wanted = np.array(sorted(keys), np.uint32)
    place = np.argsort(np.array(keys, np.uint32), kind="stable")
    numbers = [
        number
        for segment, bits in parts
        for number in dict.fromkeys(segment << _BITS | (key >> (32 - bits) if bits else 0) for key in wanted.tolist())
    ]
    found: list[bytes] = []
    for at in range(0, len(numbers), 500):
        some = numbers[at : at + 500]
        marks = ",".join("?" * len(some))
        found += [row[0] for row in connection.execute(f"SELECT data FROM terms_bucket WHERE key IN ({marks})", some)]
    rows = np.frombuffer(b"".join(found), posting_type())
    at_key = np.searchsorted(wanted, rows["key"])
    at_key[at_key == len(wanted)] = 0
    hit = wanted[at_key] == rows["key"] if len(wanted) else np.zeros(len(rows), bool)
    return Postings(place[at_key[hit]], rows["blob"][hit].astype(np.int64), rows["counts"][hit])
