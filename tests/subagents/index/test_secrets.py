"""No secret of the explored code is in any file of the cache, in whatever form: the index keeps none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from subagents.codebase.snapshot import open_snapshot
from subagents.index.opening import open_index
from subagents.index.records import decode_strings, decode_symbols
from subagents.index.worker import process
from subagents.ranking import open_finder
from tests.faults.secrets import SECRETS, leaks, make_leaky

WORDS = {
    word.lower()
    for kind, secret in SECRETS.items()
    for word in re.findall(r"[A-Za-z0-9]{12,}", secret if kind != "jwt" else secret.rpartition(".")[2])
}
"""What the secrets are made of, as a list of words would hold it."""


def leaked(folder: Path) -> list[str]:
    """What of the planted secrets stands in any file below a folder, with the file's name."""
    found: list[str] = []
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            found += [f"{path.name}: {kind}" for kind in leaks(data)]
            found += [f"{path.name}: {word}" for word in WORDS if word.encode() in data.lower()]
    return found


def test_no_byte_of_the_cache_holds_a_secret_of_the_code(tmp_path: Path) -> None:
    repository, cache = make_leaky(tmp_path / "leaky"), tmp_path / "cache"
    seen: list[str] = []
    logged: list[int] = []

    def progress(what: str, done: int, total: int) -> None:
        if cache.exists():
            seen.append(what)
            logged.append(sum(path.stat().st_size for path in cache.rglob("*-wal")))
            assert leaked(cache) == []

    with open_snapshot(repository) as snapshot, open_index(snapshot, cache, progress=progress) as index:
        assert {"index", "imports", "terms"} <= set(seen)
        assert max(logged) > 0
        results = open_finder(snapshot, index, cache).find("connect with credentials", limit=5)
        assert results[0].path == "client/connect.py"
        connect = next(symbol for symbol in index.symbols("client/connect.py") if symbol.name == "connect")
        assert connect.signature.startswith("def connect(credentials='[redacted:stripe_key]')")
        assert "[redacted:anthropic_key]" in connect.doc
        assert leaked(cache) == []
    assert leaked(cache) == []


def test_a_changed_file_with_secrets_leaves_none_either(tmp_path: Path) -> None:
    repository, cache = make_leaky(tmp_path / "leaky"), tmp_path / "cache"
    with open_snapshot(repository) as snapshot, open_index(snapshot, cache):
        pass
    settings = repository / "client" / "settings.py"
    settings.write_text(settings.read_text() + f"# another: {SECRETS['sendgrid_key']}\nADDED = 1\n")
    with open_snapshot(repository) as snapshot, open_index(snapshot, cache) as index:
        assert index.definitions("ADDED")
        assert leaked(cache) == []


@pytest.mark.parametrize("kind", SECRETS)
def test_what_replaces_a_secret_leaves_lines_and_definitions_in_place(kind: str) -> None:
    secret = {
        "url_password": f"postgres://app:{SECRETS['url_password']}@db/app",
        "assigned_secret": f"password = '{SECRETS['assigned_secret']}'",
    }.get(kind, SECRETS[kind])
    text = f'def before():\n    pass\n\n\nKEY = """{secret}"""\n\n\ndef after(key=KEY):\n    """Uses the key."""\n'
    record, facts = process("a.py", text.encode())
    plain, _ = process("a.py", text.replace(secret, "\n" * secret.count("\n")).encode())
    assert facts is not None
    assert f"[redacted:{kind}]" in facts.text
    places = [[(row[1], row[2], row[3], row[4]) for row in decode_symbols(one.symbols)] for one in (record, plain)]
    assert places[0] == places[1]
    assert decode_strings(record.strings) == decode_strings(plain.strings)
    assert record.lines == plain.lines


def test_an_index_of_a_format_that_kept_secrets_is_removed(tmp_path: Path) -> None:
    repository, cache = make_leaky(tmp_path / "leaky"), tmp_path / "cache"
    with open_snapshot(repository) as snapshot:
        folder = cache / snapshot.repository_key
        folder.mkdir(parents=True, mode=0o700)
        for name in ("index-1-01234567.sqlite", "index-1-01234567.sqlite-wal", "index-1-01234567.lock"):
            (folder / name).write_text(SECRETS["aws_key"])
        with open_index(snapshot, cache):
            pass
    assert leaked(cache) == []
    assert not list(folder.glob("index-1-*"))
