"""The fake as a process of its own: it survives the death of what it serves, and shares no interpreter lock with it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any, Self

from tests.fake_api.ledger import Charge, Totals, total
from tests.fake_api.record import RecordedRequest, from_json

ROOT = Path(__file__).resolve().parents[2]
_START_LIMIT_S = 120.0


class FakeApiProcess:
    """Like `FakeApi`, with options as plain JSON values (see `config.settings`): behaviours by name."""

    def __init__(self, **options: Any) -> None:
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self.base_url = ""
        self.api_key = str(options.get("api_key", "sk-ant-fake"))
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="fake-api-")
        port_file = Path(self._folder.name) / "port"
        config = Path(self._folder.name) / "config.json"
        config.write_text(json.dumps(self._options), encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "tests.fake_api",
            "--port-file",
            str(port_file),
            "--config",
            str(config),
            "--until-stdin-closes",
        ]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        give_up = time.monotonic() + _START_LIMIT_S
        while not port_file.exists():
            if self._process.poll() is not None or time.monotonic() > give_up:
                self.__exit__()
                raise RuntimeError("the fake API did not start")
            time.sleep(0.01)
        self.base_url = f"http://127.0.0.1:{port_file.read_text(encoding='utf-8')}"
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.terminate()
            self._process.wait()
        if self._folder is not None:
            self._folder.cleanup()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def env(self) -> dict[str, str]:
        """Environment for a program that is to talk to this fake."""
        return {"ANTHROPIC_BASE_URL": self.base_url, "ANTHROPIC_API_KEY": self.api_key}

    def client(self, **options: Any) -> Any:
        """A real `anthropic.Anthropic` pointed here, without retries unless asked."""
        import anthropic

        return anthropic.Anthropic(**{"base_url": self.base_url, "api_key": self.api_key, "max_retries": 0, **options})

    def async_client(self, **options: Any) -> Any:
        """A real `anthropic.AsyncAnthropic` pointed here, without retries unless asked."""
        import anthropic

        return anthropic.AsyncAnthropic(
            **{"base_url": self.base_url, "api_key": self.api_key, "max_retries": 0, **options}
        )

    def requests_since(self, first: int = 0, *, bodies: bool = True) -> list[RecordedRequest]:
        """All requests of all routes from the `first`-th on."""
        return [from_json(r) for r in self._get(f"requests?since={first}&bodies={int(bodies)}")]

    @property
    def requests(self) -> list[RecordedRequest]:
        return self.requests_since()

    @property
    def created(self) -> list[RecordedRequest]:
        """POST /v1/messages only."""
        return [r for r in self.requests_since() if r.number >= 0]

    @property
    def ledger(self) -> list[Charge]:
        return [Charge(**charge) for charge in self._get("ledger")]

    @property
    def totals(self) -> Totals:
        return total(self.ledger)

    @property
    def problems(self) -> list[str]:
        return list(self._get("problems"))

    @property
    def state(self) -> dict[str, Any]:
        """`requests`, `created`, `in_flight`, `clock_s`: cheap to ask while something runs."""
        return dict(self._get("state"))

    def advance(self, seconds: float) -> None:
        self._post("clock", {"advance_s": seconds})

    def fail_next(self, *faults: dict[str, Any]) -> None:
        """The coming requests fail so; `{}` lets one pass."""
        self._post("faults", {"next": list(faults)})

    def fail_by_seed(self, seed: int, rate: float, *, most: int | None = None) -> None:
        self._post("faults", {"seed": seed, "rate": rate, "most": most})

    def no_more_faults(self) -> None:
        self._post("faults", {"clear": True})

    def _get(self, what: str) -> Any:
        with urllib.request.urlopen(f"{self.base_url}/_fake/{what}") as answer:
            return json.load(answer)

    def _post(self, what: str, value: object) -> Any:
        request = urllib.request.Request(f"{self.base_url}/_fake/{what}", json.dumps(value).encode(), method="POST")
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)
