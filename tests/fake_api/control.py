"""The little door for tests when the fake runs as a process of its own: read requests and ledger, move the clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import orjson

from tests.fake_api import faults
from tests.fake_api.faults import Fault

if TYPE_CHECKING:
    from tests.fake_api.server import Server
    from tests.fake_api.service import Incoming


def handle(server: Server, incoming: Incoming) -> tuple[int, Any]:
    """Status and JSON value of a control request."""
    service = server.service
    asked = {name: values[0] for name, values in parse_qs(incoming.query).items()}
    given = orjson.loads(incoming.body) if incoming.body else {}
    match incoming.method, incoming.path.removeprefix("/_fake/"):
        case "GET", "requests":
            since = int(asked.get("since", "0"))
            return 200, [r.to_json(body=asked.get("bodies", "1") == "1") for r in service.requests[since:]]
        case "GET", "ledger":
            return 200, [charge.to_json() for charge in service.charges]
        case "GET", "problems":
            return 200, service.problems
        case "GET", "state":
            return 200, {
                "clock_s": service.clock.now_s(),
                "requests": len(service.requests),
                "created": sum(r.number >= 0 for r in service.requests),
                "in_flight": service.in_flight,
            }
        case "POST", "clock":
            service.clock.advance(float(given["advance_s"]))
            return 200, {"clock_s": service.clock.now_s()}
        case "POST", "faults":
            return 200, _add_faults(server, given)
        case "POST", "settings":
            for name in ("latency_s", "event_delay_s", "odd_chunks"):
                if name in given:
                    setattr(server, name, given[name])
            return 200, {}
        case "POST", "stop":
            server.stopping.set()
            return 200, {}
    return 404, {"error": f"no such control: {incoming.method} {incoming.path}"}


def _add_faults(server: Server, given: dict[str, Any]) -> dict[str, Any]:
    """`next`: faults of the coming requests; `seed`, `rate`, `most`: a schedule; `clear`: forget all before."""
    service = server.service
    if given.get("clear"):
        service.settings.faults = faults.FaultPlan()
    coming = sum(r.number >= 0 for r in service.requests)
    if "next" in given:
        planned = {coming + n: Fault(**fault) for n, fault in enumerate(given["next"]) if fault}
        service.settings.faults.add(faults.by_number(planned))
    if "seed" in given:
        service.settings.faults.add(faults.seeded(given["seed"], given.get("rate", 0.1), most=given.get("most")))
    return {}
