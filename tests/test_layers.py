"""The folders are the architecture: imports go one way, and importing costs little."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ORDER = ["orchestrator", "subagents", "scratch", "manifests"]
HEAVY = {"anthropic", "git", "networkx", "numpy", "tree_sitter", "rich", "scipy", "pydantic", "httpx2"}


@pytest.mark.parametrize("package", ORDER)
def test_imports_point_one_way(package: str) -> None:
    allowed = set(ORDER[ORDER.index(package) :])
    wrong = []
    for file in (ROOT / package).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                names = [node.module]
            tops = {name.split(".")[0] for name in names}
            wrong += [f"{file.relative_to(ROOT)}:{node.lineno} {top}" for top in tops & set(ORDER) - allowed]
            wrong += [f"{file.relative_to(ROOT)}:{node.lineno} tests" for top in tops if top == "tests"]
    assert not wrong


@pytest.mark.parametrize("arguments", [["--help"], ["sessions"], ["explore", "--help"]])
def test_light_commands_import_nothing_heavy(arguments: list[str], tmp_path: Path) -> None:
    code = (
        "import sys; from orchestrator.main import run; code = run(sys.argv[1:]); "
        "print(' '.join(sorted({m.split('.')[0] for m in sys.modules})), file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "LEADLINE_STATE_DIR": str(tmp_path), "HOME": str(tmp_path)},
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert HEAVY.isdisjoint(done.stderr.split())


NOT_FOR_SEARCH = {"anthropic", "git", "networkx", "tree_sitter", "rich", "asyncio"}
OURS_NOT_FOR_SEARCH = {
    "orchestrator.coordinator", "orchestrator.report", "subagents.engine", "subagents.index.build",
    "subagents.index.calls", "subagents.ranking.roles", "scratch.findings", "numpy.ma",
}  # fmt: skip


def test_a_warm_search_imports_only_what_answers_it(tmp_path: Path) -> None:
    """Each of these costs a search 5 to 200 ms; `numpy.ma` comes with `np.unique`."""
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "a.py").write_text("def moor(ship):\n    return ship\n")
    code = (
        "import sys; from orchestrator.main import run; code = run(sys.argv[1:]); "
        "print(' '.join(sorted(sys.modules)), file=sys.stderr); sys.exit(code)"
    )
    environment = {
        "PATH": "/usr/bin:/bin",
        "LEADLINE_STATE_DIR": str(tmp_path / "state"),
        "LEADLINE_CACHE_DIR": str(tmp_path / "cache"),
        "HOME": str(tmp_path),
    }
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", code, "find", str(tmp_path / "repo"), "moor the ship", "--json"],
            capture_output=True,
            text=True,
            env=environment,
            cwd=ROOT,
            check=True,
        )
    assert '"path": "a.py"' in done.stdout
    loaded = set(done.stderr.split())
    assert {name.split(".")[0] for name in loaded}.isdisjoint(NOT_FOR_SEARCH)
    assert loaded.isdisjoint(OURS_NOT_FOR_SEARCH)
