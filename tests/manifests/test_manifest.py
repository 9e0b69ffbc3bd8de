"""The manifest: what a coordinator writes comes back, and nothing malformed gets further than its reading."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests.fields import Malformed, timestamp
from manifests.manifest import Manifest, SnapshotRecord, TaskRecord
from manifests.tasks import Task, task_id

TREE = "a" * 40


def make_task(question: str) -> Task:
    identity = task_id(
        role="locate.code", question=question, scope=("src",), deliverable="d", snapshot_tree=TREE, settings={"n": 1}
    )
    return Task(id=identity, role="locate.code", question=question, scope=("src",), deliverable="d", settings={"n": 1})


TASKS = [make_task(f"question {n}") for n in range(4)]


def make_manifest(session: str = "20260101-000000-00000000", repository: str = "repo-1") -> Manifest:
    now = timestamp()
    return Manifest(
        session=session,
        repository=repository,
        root="/somewhere",
        question="How?",
        engine="static",
        engine_settings={"limit": 3},
        snapshot=SnapshotRecord(kind="git", commit="b" * 40, tree=TREE, dirty=True),
        scope=("src",),
        created_at=now,
        updated_at=now,
    )


def make_busy_manifest() -> Manifest:
    manifest = make_manifest().with_phase(1, "locate", TASKS[:2]).with_task_started(TASKS[0].id)
    manifest = manifest.with_task_ended(TASKS[0].id, "finished", usage={"tokens": 10}, coverage={"files_read": 3})
    manifest = manifest.with_task_started(TASKS[1].id).with_task_ended(TASKS[1].id, "failed", failure="boom")
    return manifest.with_phase_finished(1).with_phase(2, "trace", TASKS[2:]).with_overhead({"tokens": 5})


def test_it_comes_back_as_it_was() -> None:
    for manifest in (make_manifest(), make_busy_manifest(), make_busy_manifest().with_answer("partial").with_run()):
        assert Manifest.from_dict(manifest.to_dict()) == manifest


def test_counts_and_usage_add_up() -> None:
    manifest = make_busy_manifest()
    assert sum(manifest.counts.values()) == len(manifest.tasks) == 4
    assert manifest.counts["finished"] == manifest.counts["failed"] == 1
    assert manifest.usage == {"tokens": 15}


def test_a_second_attempt_is_charged_on_top_of_the_first() -> None:
    manifest = make_manifest().with_phase(1, "locate", TASKS[:1])
    for _ in range(2):
        manifest = manifest.with_task_started(TASKS[0].id).with_task_ended(TASKS[0].id, "partial", usage={"tokens": 7})
    assert manifest.usage == {"tokens": 14}
    assert manifest.tasks[0].attempts == 2


def test_planning_a_phase_again_keeps_the_results_of_tasks_known_by_content() -> None:
    manifest = make_manifest().with_phase(1, "locate", TASKS[:2]).with_task_started(TASKS[0].id)
    manifest = manifest.with_task_ended(TASKS[0].id, "finished", usage={"tokens": 3})
    again = manifest.with_phase(1, "locate", [TASKS[1], TASKS[2], TASKS[0]])
    assert again.task(TASKS[0].id) == manifest.task(TASKS[0].id)
    assert [record.id for record in again.tasks_of(1)] == [TASKS[1].id, TASKS[2].id, TASKS[0].id]


def test_its_size_depends_on_tasks_not_on_steps() -> None:
    manifest = make_busy_manifest()
    size = len(str(manifest.to_dict()))
    for _ in range(500):
        manifest = manifest.with_task_started(TASKS[2].id).with_task_ended(TASKS[2].id, "partial", usage={"tokens": 1})
    assert len(str(manifest.to_dict())) < size + 100


def test_a_message_too_long_to_be_read_back_is_cut_when_written() -> None:
    manifest = make_busy_manifest().with_task_ended(TASKS[2].id, "failed", failure="x" * 1_000_000)
    assert Manifest.from_dict(manifest.with_status("failed", failure="y" * 1_000_000).to_dict())


BREAKS = {
    "no session": lambda body: body.pop("session"),
    "a session that is a path": lambda body: body.update(session="../x"),
    "an unknown status": lambda body: body.update(status="done"),
    "a task twice": lambda body: body["tasks"].append(body["tasks"][0]),
    "a missing task": lambda body: body["tasks"].pop(),
    "a phase twice": lambda body: body["phases"].append(body["phases"][0]),
    "a task of no phase": lambda body: body["tasks"][0].update(phase=9),
    "usage that does not add up": lambda body: body.update(usage={"tokens": 14}),
    "usage that is text": lambda body: body["tasks"][0].update(usage={"tokens": "10"}),
    "attempts below zero": lambda body: body["tasks"][0].update(attempts=-1),
    "a flag that is a number": lambda body: body["snapshot"].update(dirty=1),
    "a tree that is none": lambda body: body["snapshot"].update(tree="HEAD"),
    "a time that is none": lambda body: body.update(created_at="now"),
    "a question too long": lambda body: body.update(question="x" * 200_000),
    "tasks that are no list": lambda body: body.update(tasks={}),
    "a task that is none": lambda body: body["tasks"].append(None),
}


@pytest.mark.parametrize("name", BREAKS)
def test_what_would_trip_the_program_is_malformed(name: str) -> None:
    body = copy.deepcopy(make_busy_manifest().to_dict())
    BREAKS[name](body)
    with pytest.raises(Malformed):
        Manifest.from_dict(body)


def paths(value: object, here: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    found = [here] if here else []
    if isinstance(value, dict):
        for key, inner in value.items():
            found += paths(inner, (*here, key))
    if isinstance(value, list):
        for key, inner in enumerate(value):
            found += paths(inner, (*here, key))
    return found


junk = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=10)
    | st.just([])
    | st.just({})
)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_value_anywhere_is_read_or_malformed_never_another_error(data: st.DataObject) -> None:
    body = copy.deepcopy(make_busy_manifest().to_dict())
    *parents, last = data.draw(st.sampled_from(paths(body)))
    target: object = body
    for key in parents:
        target = target[key]  # type: ignore[index]
    target[last] = data.draw(junk)  # type: ignore[index]
    try:
        manifest = Manifest.from_dict(body)
    except Malformed:
        return
    assert Manifest.from_dict(manifest.to_dict()) == manifest
    assert all(isinstance(record, TaskRecord) for record in manifest.tasks)
