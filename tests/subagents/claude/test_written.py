"""What a step writes is its own content and little more, however many steps came before."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from manifests.sessions import TRANSCRIPT_SCHEMA
from subagents.claude.messages import assistant_params, user_params
from subagents.claude.transcript import Transcript
from subagents.engine import Workspace
from tests.bench.claude_cost import Walker, files
from tests.fake_api.thread import FakeApi
from tests.subagents.claude.world import World, make_repository, opened, session_on, settings_for

STEPS = 60


@dataclass(frozen=True)
class Written:
    """Bytes of a whole session: on disk, and of what was said, answered and found."""

    disk: int
    content: int


async def run(workspace: Workspace, state: Path, steps: int) -> Written:
    with session_on(workspace, state) as here:
        with FakeApi(model=Walker(steps), keep_bodies=False) as api:
            outcome = await here.run(settings_for(api, max_turns=steps + 10))
        assert outcome.status == "finished", outcome
        folder = here.session.folder
        disk = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        return Written(disk=disk, content=content_of(here))


def content_of(here: World) -> int:
    task = here.task()
    records = here.session.read_log(f"transcripts/{task.id}.jsonl", TRANSCRIPT_SCHEMA)
    transcript = Transcript(log=_NoLog(), evidence=here.evidence.get).load(record.body for record in records)
    said: list[Any] = [finding.to_dict() for finding in here.recorder(task).findings()]
    for pair in transcript.history.pairs:
        said += assistant_params(pair.assistant, thinking=True)
        said += user_params(pair.user, cleared=False, state=True) if pair.user else []
    return sum(len(orjson.dumps(one)) for one in said)


class _NoLog:
    def append(self, body: object, *, sync: bool = True) -> int:
        raise AssertionError("nothing is written here")


async def test_a_step_writes_little_more_than_its_own_content_whatever_came_before(tmp_path: Path) -> None:
    (tmp_path / "facts").mkdir()
    make_repository(tmp_path / "facts", files(STEPS))
    with opened(tmp_path / "facts", tmp_path / "cache") as workspace:
        few = await run(workspace, tmp_path / "few", STEPS // 3)
        many = await run(workspace, tmp_path / "many", STEPS)
    more = STEPS - STEPS // 3
    early, late = few.disk / (STEPS // 3), (many.disk - few.disk) / more
    assert late <= early, "the first steps also pay for the opening"
    assert many.disk - few.disk <= 1.25 * (many.content - few.content)
