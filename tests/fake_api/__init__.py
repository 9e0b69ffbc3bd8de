"""A strict Messages API on loopback, for tests through the real SDK. See docs/design-notes/fake-api.md."""

from tests.fake_api.faults import Fault, FaultPlan
from tests.fake_api.models.base import Call
from tests.fake_api.models.scripted import Ruled, Scripted, Sequential
from tests.fake_api.persona import ANTHROPIC, COMPATIBLE, Persona
from tests.fake_api.process import FakeApiProcess
from tests.fake_api.reply import Reply
from tests.fake_api.thread import FakeApi

__all__ = [
    "ANTHROPIC",
    "COMPATIBLE",
    "Call",
    "FakeApi",
    "FakeApiProcess",
    "Fault",
    "FaultPlan",
    "Persona",
    "Reply",
    "Ruled",
    "Scripted",
    "Sequential",
]
