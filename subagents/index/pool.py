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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from manifests.errors import EngineError
from subagents.index.records import BlobRecord
from subagents.index.worker import BOOT, LENGTH, FileTask, Setup, send

FILE_LIMIT_S = 30.0
"""Reading, parsing and extracting one file; generous, because a loaded machine must not lose files."""
_START_LIMIT_S = 60.0

_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""numpy starts threads for algebra that nobody does here, and waits for them."""

_Done = list[tuple[FileTask, BlobRecord]]
_STARTS = 4
"""Tries. A worker may be killed while it starts (a machine out of memory does that) without being broken."""


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
            env={key: value for key, value in os.environ.items() if not key.startswith("PYTHON")} | _ENVIRONMENT,
        )
        self.started = False
        assert self.process.stdin is not None and self.process.stdout is not None
        self.stdin = self.process.stdin
        self._out = self.process.stdout.fileno()
        with suppress(BrokenPipeError):  # killed already: the first look for results says so
            send(self.stdin, setup)

    def results(self, limit_s: float) -> list[BlobRecord] | None:
        """The records of the next batch; None when they did not come in time. EOFError when the worker is gone."""
        deadline = time.monotonic() + limit_s + (0 if self.started else _START_LIMIT_S)
        head = self._exactly(LENGTH.size, deadline)
        data = self._exactly(LENGTH.unpack(head)[0], deadline) if head is not None else None
        if data is None:
            return None
        received: list[BlobRecord] | None = pickle.loads(data)
        if received is None:  # ready for work
            self.started = True
            return self.results(limit_s)
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

    def run(self, batches: Iterable[Sequence[FileTask]]) -> Iterator[list[tuple[FileTask, BlobRecord]]]:
        """Results as they come, some at a time. The workers' threads take batches one at a time, under a lock."""
        results: queue.Queue[_Done | Exception | None] = queue.Queue(maxsize=8)
        source = iter(batches)
        lock = threading.Lock()

        def next_batch() -> Sequence[FileTask] | None:
            with lock:
                return next(source, None)

        def put(item: _Done | Exception | None) -> None:
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

    def _run_batch(self, worker: _Worker, batch: list[FileTask], put: Callable[[_Done], None]) -> _Worker:
        """Run a batch to its end. If it kills or stalls the worker, its files are run one by one, which tells whose
        fault it was, and costs the others nothing but time. Gives back the worker that can go on."""
        todo = [batch]
        failures_at_start = 0
        while todo and not self._stop.is_set():
            some = todo[-1]
            try:
                send(worker.stdin, some)
                records = worker.results(self._file_limit_s)
                if records is not None:
                    put(list(zip(some, records, strict=True)))
                    todo.pop()
                    continue
                reason, detail = "parse_timeout", f"no result within {self._file_limit_s:.0f} s"
                worker.stop()
            except (EOFError, BrokenPipeError):
                said = worker.stop()
                if not worker.started:
                    failures_at_start += 1
                    if failures_at_start >= _STARTS:
                        raise EngineError(
                            f"the index worker does not start: {said}", hint="check the installation"
                        ) from None
                    worker = _Worker(self._setup)
                    continue
                reason, detail = "parse_error", f"the parser ended abruptly ({said})" if said else "the parser crashed"
            todo.pop()
            if len(some) > 1:
                todo += [[task] for task in reversed(some)]
            else:
                put([(some[0], BlobRecord(None, 0, reason, detail))])
            worker = _Worker(self._setup)
        return worker
