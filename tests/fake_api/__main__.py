"""`python -m tests.fake_api --port-file FILE [--config FILE]`: serve until terminated."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from pathlib import Path

from tests.fake_api.clock import Clock
from tests.fake_api.config import settings
from tests.fake_api.server import Server
from tests.fake_api.service import Service


async def serve(port_file: Path, options: dict[str, object], *, watch_stdin: bool) -> None:
    """Listen, say where, and wait for the end."""
    serving = {name: options.pop(name) for name in ("latency_s", "event_delay_s", "odd_chunks") if name in options}
    server = Server(Service(settings(**options), Clock()), **serving)  # type: ignore[arg-type]
    await server.start()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, server.stopping.set)
    watch = await end_with_stdin(server) if watch_stdin else None
    announce(port_file, server.port)
    await server.stopping.wait()
    if watch is not None:
        watch.cancel()
    await server.stop()


async def end_with_stdin(server: Server) -> asyncio.Task[bytes]:
    """Stop when standard input ends, which it does when the parent dies, however it dies."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    watch = loop.create_task(reader.read())
    watch.add_done_callback(lambda _: server.stopping.set())
    return watch


def announce(port_file: Path, port: int) -> None:
    """Whoever waits for the file finds a whole number in it."""
    draft = port_file.with_suffix(".tmp")
    draft.write_text(str(port), encoding="utf-8")
    draft.rename(port_file)
    print(f"fake Messages API on http://127.0.0.1:{port}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.fake_api", description=__doc__)
    parser.add_argument("--port-file", type=Path, required=True, help="where to write the port once it listens")
    parser.add_argument("--config", type=Path, help="JSON file with options of config.settings and Server")
    parser.add_argument("--until-stdin-closes", action="store_true", help="end when standard input does")
    arguments = parser.parse_args()
    options = json.loads(arguments.config.read_text(encoding="utf-8")) if arguments.config else {}
    asyncio.run(serve(arguments.port_file, options, watch_stdin=arguments.until_stdin_closes))


if __name__ == "__main__":
    main()
