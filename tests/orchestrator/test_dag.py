from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests.tasks import Task
from orchestrator.dag import PlanRefused, check_plan, waves

PATHS = {"src/a.py", "src/deep/b.py", "docs/x.md"}


def task(id: str, *, scope: tuple[str, ...] = (), after: tuple[str, ...] = (), question: str = "q") -> Task:
    return Task(id=id, role="investigate", question=question, scope=scope, depends_on=after)


def refused(*tasks: Task, most: int = 10) -> str:
    with pytest.raises(PlanRefused) as caught:
        check_plan(tasks, known_paths=PATHS, finished=(), most=most)
    return str(caught.value)


def test_a_sound_plan_passes() -> None:
    plan = [task("a", scope=("src/deep",)), task("b", scope=("docs",), question="r", after=("a",))]
    check_plan(plan, known_paths=PATHS, finished=(), most=2)


def test_each_fault_is_named() -> None:
    assert "circle" in refused(task("a", scope=("docs",), after=("b",)), task("b", scope=("src",), after=("a",)))
    assert "two tasks are the same: a" in refused(task("a"), task("a"))
    assert "'lib' is not in the snapshot" in refused(task("a", scope=("lib",)))
    assert "depends on z" in refused(task("a", after=("z",)))
    assert "asks nothing" in refused(task("a", question="  "))
    assert "at most 1" in refused(task("a", scope=("src",)), task("b", scope=("docs",)), most=1)


def test_of_circles_beyond_counting_a_few_are_named() -> None:
    names = [f"t{n}" for n in range(40)]
    tasks = [task(name, question=name, after=tuple(other for other in names if other != name)) for name in names]
    assert refused(*tasks, most=50).count("circle") == 3


@pytest.mark.parametrize(
    ("one", "other"),
    [(("src",), ("src/deep",)), (("src/a.py",), ("src/a.py",)), ((), ("docs",)), (("src/",), ("src",))],
)
def test_overlapping_scopes_are_refused(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    assert "overlap" in refused(task("a", scope=one), task("b", scope=other))


def test_what_they_deliver_and_may_spend_sets_no_two_tasks_apart() -> None:
    one = replace(task("a", scope=("src",)), deliverable="the callers", settings={"share": 0.7})
    other = replace(task("b", scope=("src/deep",), question="why?"), deliverable="the reason", settings={"share": 0.3})
    assert "overlap" in refused(one, other)
    after = replace(other, depends_on=("a",))
    check_plan([one, after], known_paths=PATHS, finished=(), most=9)
    check_plan([after, one], known_paths=PATHS, finished=(), most=9)


def test_folders_that_share_a_prefix_do_not_overlap() -> None:
    check_plan([task("a", scope=("s",)), task("b", scope=("src",))], known_paths={"s/x", "src/x"}, finished=(), most=9)


@given(st.lists(st.lists(st.integers(0, 30), max_size=4), max_size=30))
def test_waves_put_every_task_after_what_it_depends_on(links: list[list[int]]) -> None:
    tasks = [task(str(n), after=tuple({str(d) for d in deps if d < n})) for n, deps in enumerate(links)]
    level = {i: n for n, wave in enumerate(waves(tasks)) for i in wave}
    assert set(level) == {t.id for t in tasks}
    assert all(level[d] < level[t.id] for t in tasks for d in t.depends_on)


def test_tasks_set_apart_by_their_settings_do_not_overlap() -> None:
    one = Task(id="a", role="trace", question="q", settings={"root": "x"})
    other = Task(id="b", role="trace", question="q", settings={"root": "y"})
    check_plan([one, other], known_paths=PATHS, finished=(), most=9)
