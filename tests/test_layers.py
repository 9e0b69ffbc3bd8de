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
