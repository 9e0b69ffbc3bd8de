"""What a path is for: code, test, documentation, configuration, example, generated or vendored. Names only, no I/O."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

PathRole = Literal["code", "test", "docs", "config", "example", "vendored"]

_TEST = re.compile(
    r"(^|/)(tests?|testing|testsuite|spec|specs|__tests__|t|unit_tests|benches|fuzz|bench(marks?)?)/"
    r"|(^|/)(test_[^/]*|[^/]*_tests?|[^/]*[._-](test|spec)|conftest|tests?|mocks?)\.[A-Za-z]+$"
    r"|(^|/)[^/]*(Test|Tests|IT|Spec)\.(java|kt|scala|cs|swift|php)$"
    r"|(^|/)(?i:([^/]+[-_.])?(tests?|testing|mocks?|fakes?|fixtures?)([-_](utils?|support|helpers?|lib|data|kit))?"
    r"|tests?[-_][^/]+|test(utils?|lib|kit|env|data|files|support|fixtures?|helpers?))/"
    r"|(^|/)(mocks?|fakes?|test[-_]?(utils?|helpers?|support))\.[A-Za-z]+$"
    r"|(^|/)(?!latest/|contest/|attest/)[a-z]+test/[^/]+\.go$",
)
"""Tests, and what only serves them: a crate, package or module of test support is not what the program does."""
_DOCS = re.compile(r"(^|/)(docs?|documentation|man|guides?)/|\.(md|markdown|rst|adoc|asciidoc|txt)$", re.IGNORECASE)
_PROSE = re.compile(
    r"\.(md|markdown|rst|adoc|asciidoc|txt)$|(^|/)(README|CHANGES|CHANGELOG|HISTORY|NEWS)[^/]*$", re.IGNORECASE
)
_CONFIG = re.compile(
    r"\.(toml|ya?ml|json|cfg|ini|conf|properties|env|lock|xml|plist|gradle)$"
    r"|(^|/)(Makefile|Dockerfile|CMakeLists\.txt|Procfile|go\.mod|go\.sum|\.[A-Za-z]+rc|\.editorconfig|\.gitignore)$"
)
_EXAMPLE = re.compile(
    r"(^|/)(examples?|samples?|demos?|tutorials?|snippets|playground|scripts|utils/generate[^/]*)/", re.IGNORECASE
)
_VENDORED = re.compile(
    r"(^|/)(vendor|vendored|third_party|thirdparty|node_modules|deps|external|_vendor|extern|dist)/"
    r"|^build/(?!src/|lib/)"
)


_ASIDE = re.compile(
    r"(^|/)(contrib|extras?|legacy|deprecated|experimental|compat|unstable|addons|plugins)/", re.IGNORECASE
)


def aside(path: str) -> bool:
    """Whether code stands beside the main line by the name of its folder: an extra, or what is left from before."""
    return _ASIDE.search(path) is not None


@lru_cache(maxsize=65536)
def path_role(path: str) -> PathRole:
    """The first that fits, in the order vendored, test, example, config, docs, code."""
    if _VENDORED.search(path):
        return "vendored"
    if _TEST.search(path):
        return "test"
    if _EXAMPLE.search(path):
        return "example"
    if _CONFIG.search(path):
        return "config"
    if _DOCS.search(path):
        return "docs"
    return "code"


def is_prose(path: str) -> bool:
    """Text written for people: Markdown, reStructuredText, plain text, README and change logs."""
    return bool(_PROSE.search(path)) and not path.endswith(("CMakeLists.txt", "requirements.txt"))


def is_changelog(path: str) -> bool:
    """Lists of past changes: they mention everything and explain nothing."""
    name = path.rpartition("/")[2].lower()
    return bool(
        re.match(r"(changes|changelog|history|news|release|whatsnew|00-releasenotes)", name)
        or re.search(r"(^|/)(releases?|release[-_]notes|whatsnew|changelogs?|news)/", path.lower())
    )


def package_of(path: str, depth: int = 2) -> str:
    """The folder a path is counted under: at most `depth` parts, a leading `src`, `lib` or `packages` not counted."""
    parts = path.split("/")[:-1]
    if not parts:
        return "."
    extra = 1 if parts[0] in ("src", "lib", "packages", "crates", "pkg", "internal") else 0
    return "/".join(parts[: depth + extra])
