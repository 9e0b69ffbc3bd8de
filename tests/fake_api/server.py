"""HTTP/1.1 on loopback for the service: persistent connections, chunked streams, and broken connections on purpose."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from http import HTTPStatus
from urllib.parse import unquote

import orjson

from tests.fake_api import control
from tests.fake_api.faults import STREAM_KINDS, Fault
from tests.fake_api.service import Incoming, Outgoing, Service

_MAX_HEAD_BYTES = 256 * 1024


class BadRequest(Exception):
    """Not HTTP, or cut off."""


class Server:
    """Serves one `Service`. All methods but `stop` run on the server's own event loop."""

    def __init__(
        self, service: Service, *, latency_s: float = 0.0, event_delay_s: float = 0.0, odd_chunks: bool = False
    ) -> None:
        self.service = service
        self.latency_s = latency_s
        self.event_delay_s = event_delay_s
        self.odd_chunks = odd_chunks
        self.port = 0
        self.stopping = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen on a port that the kernel chooses."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=_MAX_HEAD_BYTES, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close the listener and every connection."""
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, BadRequest, asyncio.CancelledError):
            pass  # the client went away, or the server is being stopped: there is nobody left to tell
        finally:
            self._tasks.discard(task)
            with contextlib.suppress(ConnectionError, RuntimeError):
                writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        incoming = await read_request(reader)
        if incoming is None:
            return False
        if incoming.path.startswith("/_fake/"):
            await self._control(incoming, writer)
            return True
        self.service.in_flight += 1
        try:
            outgoing = self.service.handle(incoming)
            # Requests that have already arrived are measured before this reply begins, as they would be in reality.
            await asyncio.sleep(self.latency_s)
            return await self._answer(outgoing, writer)
        finally:
            self.service.in_flight -= 1

    async def _control(self, incoming: Incoming, writer: asyncio.StreamWriter) -> None:
        status, value = control.handle(self, incoming)
        body = orjson.dumps(value)
        writer.write(head(status, {"content-type": "application/json", "content-length": str(len(body))}) + body)
        await writer.drain()

    async def _answer(self, outgoing: Outgoing, writer: asyncio.StreamWriter) -> bool:
        fault = outgoing.fault
        if fault is not None and fault.kind == "reset_before":
            reset(writer)
            return False
        if fault is not None and fault.kind == "stall":
            await asyncio.sleep(fault.seconds)
        outgoing.begin()
        outgoing.end(fault is None or fault.kind == "stall")  # before the last byte: the test may look right after it
        try:
            return await self._send(outgoing, writer, fault)
        except (ConnectionError, asyncio.CancelledError):
            outgoing.end(False)
            raise

    async def _send(self, outgoing: Outgoing, writer: asyncio.StreamWriter, fault: Fault | None) -> bool:
        """Returns whether the connection is still there."""
        if outgoing.stream is None:
            return await self._send_body(outgoing, writer, fault)
        writer.write(head(outgoing.status, {**outgoing.headers, "transfer-encoding": "chunked"}))
        chunks = broken(outgoing.stream, fault)
        if self.event_delay_s:
            for chunk in chunks:
                self._write_chunked(writer, chunk)
                await writer.drain()
                await asyncio.sleep(self.event_delay_s)
        else:
            self._write_chunked(writer, b"".join(chunks))
        if fault is not None and fault.kind in {"reset_mid", "reset_after_headers"}:
            await writer.drain()
            await asyncio.sleep(0.01)  # a reset discards what the client has not read yet
            reset(writer)
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    def _write_chunked(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        if not data:
            return
        size = 97 if self.odd_chunks else len(data)
        for at in range(0, len(data), size):
            part = data[at : at + size]
            writer.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")

    async def _send_body(self, outgoing: Outgoing, writer: asyncio.StreamWriter, fault: Fault | None) -> bool:
        body = outgoing.body
        if fault is not None and fault.kind == "garbage":
            body = bytes((7 * n * n + 13) % 256 for n in range(200))
        if fault is not None and fault.kind in {"cut_json", "end_early"}:
            body = body[: len(body) // 2]
        start = head(outgoing.status, {**outgoing.headers, "content-length": str(len(body))})
        if fault is not None and fault.kind in {"reset_mid", "reset_after_headers", "sse_error"}:
            writer.write(start + (body[: len(body) // 2] if fault.kind == "reset_mid" else b""))
            await writer.drain()
            await asyncio.sleep(0.01)
            reset(writer)
            return False
        writer.write(start + body)
        await writer.drain()
        return True


def broken(stream: list[bytes], fault: Fault | None) -> list[bytes]:
    """The events that still go out under this fault."""
    if fault is None or fault.kind not in STREAM_KINDS | {"reset_after_headers", "garbage"}:
        return stream
    upto = min(fault.after_events, len(stream) - 1)
    match fault.kind:
        case "reset_after_headers":
            return []
        case "garbage":
            return [b"event: message_start\ndata: {]\n\n"]
        case "cut_json":
            return [*stream[:upto], stream[upto][: -len(stream[upto]) // 3] + b"\n\n"]
        case "sse_error":
            error = {"type": fault.error_type, "message": fault.message or "Overloaded"}
            body = orjson.dumps({"type": "error", "error": error})
            return [*stream[:upto], b"event: error\ndata: " + body + b"\n\n"]
        case _:
            return stream[:upto]


def reset(writer: asyncio.StreamWriter) -> None:
    """Close with RST, not FIN."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def head(status: int, headers: dict[str, str]) -> bytes:
    """Status line and headers."""
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Overloaded" if status == 529 else "Unknown"
    lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1")


async def read_request(reader: asyncio.StreamReader) -> Incoming | None:
    """The next request of a connection, or None when the client closed it."""
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if not error.partial:
            return None
        raise
    first, *lines = raw.decode("latin-1").split("\r\n")
    method, _, rest = first.partition(" ")
    target, _, _ = rest.rpartition(" ")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip().lower()] = value.strip()
    path, _, query = target.partition("?")
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = await _read_chunks(reader)
    else:
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Incoming(method, unquote(path), query, headers, body)


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    parts: list[bytes] = []
    while True:
        size = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
        data = await reader.readexactly(size + 2)
        if size == 0:
            return b"".join(parts)
        parts.append(data[:-2])
