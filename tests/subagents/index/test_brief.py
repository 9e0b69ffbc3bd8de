"""The repository brief says what is there, and every entry can be cited."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from subagents.codebase.snapshot import open_snapshot
from subagents.index.brief import RepositoryBrief
from subagents.index.briefing import choose_folders, make_brief
from subagents.index.kept_brief import kept, repository_brief
from subagents.index.opening import open_index
from subagents.index.sections import sections

FILES = {
    "README.md": "# Shop\n\n[![badge](x)](y)\n\nA shop that sells tea to people. It is small.\n",
    "pyproject.toml": '[project]\nname = "shop"\n[project.scripts]\nshop = "shop.cli:main"\n',
    "Dockerfile": 'FROM x\nENTRYPOINT ["shop"]\n',
    "package.json": '{"bin": {"shopjs": "js/run.js"}}',
    "src/shop/__init__.py": '"""Sells tea."""\n',
    "src/shop/cli.py": '"""Commands."""\nfrom shop.core.engine import run\n\n\nif __name__ == "__main__":\n    run()\n',
    "src/shop/core/__init__.py": '\n"""\nWhat does the work. Quietly.\n"""\n',
    "src/shop/core/engine.py": "from shop.store import db\n\n\ndef run():\n    return db.load()\n" * 30,
    "src/shop/store/__init__.py": "",
    "src/shop/store/db.py": "def load():\n    from shop.core import engine\n    return engine\n" * 40,
    "cmd/tool/main.go": "package main\n\nfunc main() {}\n",
    "go.mod": "module x.org/y\n",
    "docs/guide.rst": "Guide\n=====\n\nFirst\n-----\n\nText.\n",
    "tests/test_cli.py": "from shop import cli\n\n\ndef test_it():\n    assert cli\n",
}


@pytest.fixture(scope="module")
def brief(tmp_path_factory: pytest.TempPathFactory) -> RepositoryBrief:
    root = tmp_path_factory.mktemp("brief")
    for path, text in FILES.items():
        (root / "repo" / path).parent.mkdir(parents=True, exist_ok=True)
        (root / "repo" / path).write_text(text, "utf-8")
    with open_snapshot(root / "repo") as snapshot, open_index(snapshot, root / "cache", extras=()) as index:
        return repository_brief(snapshot, index)


def test_purposes_are_quoted_from_where_they_stand(brief: RepositoryBrief) -> None:
    assert (brief.purpose.text, brief.purpose.path, brief.purpose.line) == (
        "A shop that sells tea to people.",
        "README.md",
        5,
    )
    said = {package.folder: (package.purpose, package.path, package.line) for package in brief.packages}
    assert said["src/shop/core"] == ("What does the work.", "src/shop/core/__init__.py", 3)
    assert said["src/shop"] == ("Sells tea.", "src/shop/__init__.py", 1)


def test_entry_points_of_every_sort_are_found(brief: RepositoryBrief) -> None:
    found = {(entry.name, entry.kind, entry.path, entry.line) for entry in brief.entry_points}
    assert found == {
        ("shop", "command", "pyproject.toml", 4),
        ("shopjs", "command", "package.json", 1),
        ("ENTRYPOINT", "container", "Dockerfile", 2),
        ("tool", "main", "cmd/tool/main.go", 3),
        ("cli.py", "script", "src/shop/cli.py", 5),
    }


def test_layers_cycles_and_hubs_come_from_imports(brief: RepositoryBrief) -> None:
    layer = {package.folder: package.layer for package in brief.packages}
    assert layer["src/shop"] > layer["src/shop/core"] == layer["src/shop/store"]
    (cycle,) = brief.cycles
    assert cycle.packages == ("src/shop/core", "src/shop/store")
    assert {(step.path, step.line) for step in cycle.steps} == {
        ("src/shop/core/engine.py", 1),
        ("src/shop/store/db.py", 2),
    }
    assert brief.hubs[0].path == "src/shop/core/engine.py"


def test_every_place_named_in_the_page_exists(brief: RepositoryBrief) -> None:
    import re

    page = brief.to_markdown()
    places = re.findall(r"([\w./-]+\.\w+|Dockerfile):(\d+)", page)
    assert len(places) > 15
    for path, line in places:
        assert 1 <= int(line) <= len(FILES[path].split("\n")), (path, line)


def test_document_is_json_and_the_page_is_a_page(brief: RepositoryBrief) -> None:
    assert json.loads(json.dumps(brief.to_dict())) == json.loads(json.dumps(brief.to_dict()))
    assert [test.folder for test in brief.tests] == ["tests"]
    assert {document.title for document in brief.documents} >= {"Shop", "Guide"}
    assert len(brief.to_markdown()) < 4_000


def test_a_brief_is_kept_until_the_snapshot_changes(tmp_path: Path) -> None:
    repo, cache = tmp_path / "repo", tmp_path / "cache"
    for path, text in FILES.items():
        (repo / path).parent.mkdir(parents=True, exist_ok=True)
        (repo / path).write_text(text, "utf-8")

    def asked() -> tuple[RepositoryBrief, RepositoryBrief | None]:
        with open_snapshot(repo) as snapshot, open_index(snapshot, cache, extras=()) as index:
            before = kept(index)
            made = repository_brief(snapshot, index)
            assert made == kept(index) == make_brief(snapshot, index)
            return made, before

    made, before = asked()
    assert before is None
    assert asked() == (made, made)
    file = next(cache.rglob("brief.json"))
    content = file.read_bytes()
    for damage in (b"", content[:-1], content.replace(b"tea", b"rum")):
        file.write_bytes(damage)
        assert asked() == (made, None)
    (repo / "README.md").write_text("# Shop\n\nA shop that sells coffee.\n")
    changed, before = asked()
    assert before is None and "coffee" in changed.purpose.text


def test_a_brief_that_quotes_a_secret_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    secret = "ghp_" + "a1B2" * 9
    (tmp_path / "repo" / "README.md").write_text(f"# Shop\n\nSells tea with the token {secret} to people.\n")
    (tmp_path / "repo" / "a.py").write_text("x = 1\n")
    with open_snapshot(tmp_path / "repo") as snapshot, open_index(snapshot, tmp_path / "c", extras=()) as index:
        made = repository_brief(snapshot, index)
        assert secret in made.purpose.text
        assert kept(index) is None


def test_choosing_folders_covers_every_file_and_is_bounded() -> None:
    files = [(f"a/b{n % 40}/c{n % 7}/f{n}.py", 100) for n in range(2000)] + [("top.py", 1)]
    chosen = choose_folders(files)
    assert len(chosen) <= 25
    assert choose_folders(files) == chosen
    assert choose_folders([]) == ()


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("markdown", "# A\nx\n```\n# no\n```\n## B\ny\n", [("A", 1, 1, 5), ("B", 2, 6, 7)]),
        ("markdown", "intro\n\nTitle\n=====\nx\n", [("", 0, 1, 2), ("Title", 1, 3, 5)]),
        ("rst", "====\nTop\n====\n\nSub\n---\nx\n", [("Top", 1, 1, 4), ("Sub", 2, 5, 7)]),
        ("asciidoc", "= Top\nx\n== Sub\n", [("Top", 1, 1, 2), ("Sub", 2, 3, 3)]),
        ("text", "only words\n", [("", 0, 1, 1)]),
        ("text", "", []),
    ],
)
def test_documents_are_cut_at_their_headings(
    language: str, text: str, expected: list[tuple[str, int, int, int]]
) -> None:
    lines = text.split("\n")[:-1] if text else []
    found = sections("d", language, lines)
    assert [(s.title, s.level, s.start, s.end) for s in found] == expected


def test_repository_without_code_has_a_brief(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "notes.txt").write_text("words\n")
    with open_snapshot(tmp_path / "repo") as snapshot, open_index(snapshot, tmp_path / "c", extras=()) as index:
        made = repository_brief(snapshot, index)
    assert (made.packages, made.entry_points, made.cycles) == ((), (), ())
    assert "1 files read" in made.to_markdown()
