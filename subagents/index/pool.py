"""A few worker processes, each fed and read by a thread. A worker that dies or hangs costs one file, not the build."""

from __future__ import annotations

import os
import pickle
import queue
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from manifests.errors import EngineError
from subagents.index.records import BlobRecord
from subagents.index.worker import BOOT, LENGTH, FileTask, Setup, send

FILE_LIMIT_S = 30.0
"""Reading, parsing and extracting one file; generous, because a loaded machine must not lose files."""
_START_LIMIT_S = 60.0


def worker_count(asked: int | None, tasks: int) -> int:
    """At most one worker a usable processor, and none that would have next to nothing to do."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(asked or min(usable, 16), (tasks + 23) // 24))


class _Worker:
    def __init__(self, setup: Setup) -> None:
        paths = [path for path in sys.path if path and Path(path).is_absolute()]
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", BOOT, *paths],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={key: value for key, value in os.environ.items() if not key.startswith("PYTHON")},
        )
        self.started = False
        assert self.process.stdin is not None and self.process.stdout is not None
        self.stdin = self.process.stdin
        self._out = self.process.stdout.fileno()
        send(self.stdin, setup)

    def result(self, limit_s: float) -> tuple[int, BlobRecord] | None:
        """The next result; None when none came in time. EOFError when the worker is gone."""
        deadline = time.monotonic() + limit_s + (0 if self.started else _START_LIMIT_S)
        head = self._exactly(LENGTH.size, deadline)
        data = self._exactly(LENGTH.unpack(head)[0], deadline) if head is not None else None
        if data is None:
            return None
        received: tuple[int, BlobRecord] | None = pickle.loads(data)
        if received is None:  # ready for work
            self.started = True
            return self.result(limit_s)
        return received

    def _exactly(self, size: int, deadline: float) -> bytes | None:
        parts: list[bytes] = []
        while size:
            if not select.select([self._out], [], [], max(0.0, deadline - time.monotonic()))[0]:
                return None
            part = os.read(self._out, min(size, 1 << 20))
            if not part:
                raise EOFError
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def stop(self) -> str:
        """End the process; what it wrote to stderr last, for people."""
        self.process.kill()
        assert self.process.stderr is not None
        if self.process.stderr.closed:
            return ""
        said = self.process.stderr.read()[-2000:].decode("utf-8", "replace").strip()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    continue
        return said.rpartition("\n")[2]


class Pool:
    """Runs batches of tasks; use as a context manager, which ends all workers."""

    def __init__(self, setup: Setup, workers: int, *, file_limit_s: float = FILE_LIMIT_S) -> None:
        self._setup = setup
        self._workers = workers
        self._file_limit_s = file_limit_s
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def run(self, batches: Iterable[Sequence[FileTask]]) -> Iterator[tuple[FileTask, BlobRecord]]:
        """Results as they come. Batches are taken by the workers' threads, one at a time, under a lock."""
        results: queue.Queue[tuple[FileTask, BlobRecord] | Exception | None] = queue.Queue(maxsize=200)
        source = iter(batches)
        lock = threading.Lock()

        def next_batch() -> Sequence[FileTask] | None:
            with lock:
                return next(source, None)

        def put(item: tuple[FileTask, BlobRecord] | Exception | None) -> None:
            while not self._stop.is_set():
                try:
                    results.put(item, timeout=0.2)
                except queue.Full:
                    continue
                return

        def serve() -> None:
            worker = None
            try:
                worker = _Worker(self._setup)
                while not self._stop.is_set() and (batch := next_batch()) is not None:
                    worker = self._run_batch(worker, list(batch), put)
            except Exception as error:  # noqa: BLE001  # carried to the consumer, who raises it
                put(error)
            finally:
                if worker is not None:
                    worker.stop()
                put(None)

        self._threads = [threading.Thread(target=serve, name=f"index-{n}", daemon=True) for n in range(self._workers)]
        for thread in self._threads:
            thread.start()
        running = len(self._threads)
        while running:
            item = results.get()
            if item is None:
                running -= 1
            elif isinstance(item, Exception):
                raise item
            else:
                yield item

    def _run_batch(self, worker: _Worker, batch: list[FileTask], put: object) -> _Worker:
        """Run a batch to its end, replacing the worker as often as a file kills or stalls it."""
        assert callable(put)
        failures_at_start = 0
        while batch and not self._stop.is_set():
            try:
                send(worker.stdin, batch)
                while batch:
                    result = worker.result(self._file_limit_s)
                    if result is None:
                        reason, detail = "parse_timeout", f"no result within {self._file_limit_s:.0f} s"
                        worker.stop()
                        break
                    put((batch.pop(0), result[1]))
                else:
                    return worker
            except (EOFError, BrokenPipeError):
                said = worker.stop()
                if not worker.started:
                    failures_at_start += 1
                    if failures_at_start > 1:
                        raise EngineError(
                            f"the index worker does not start: {said}", hint="check the installation"
                        ) from None
                    worker = _Worker(self._setup)
                    continue
                reason, detail = "parse_error", f"the parser ended abruptly ({said})" if said else "the parser crashed"
            put((batch.pop(0), BlobRecord(None, 0, reason, detail)))
            worker = _Worker(self._setup)
        return worker
