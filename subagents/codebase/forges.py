"""Permanent links into the web pages of known forges, for snapshots that are a commit. Nothing is looked up."""

from __future__ import annotations

import re
from urllib.parse import quote

_REMOTE = re.compile(
    r"(?:https?://(?:[^/@\s]*@)?|ssh://(?:[^/@\s]*@)?|[\w.-]+@)(?P<host>[\w.-]+)(?::\d+)?[/:]"
    r"(?P<path>[\w.-]+(?:/[\w.-]+)+)/?"
)
_PAGES = {
    "github.com": ("{path}/blob/{commit}/", "#L{start}-L{end}"),
    "gitlab.com": ("{path}/-/blob/{commit}/", "#L{start}-{end}"),
    "codeberg.org": ("{path}/src/commit/{commit}/", "#L{start}-L{end}"),
    "bitbucket.org": ("{path}/src/{commit}/", "#lines-{start}:{end}"),
}


def permalink(remote: str, commit: str, path: str, start: int, end: int) -> str:
    """A link to these lines, or empty for a remote that is no known forge. Credentials in the remote never get in."""
    match = _REMOTE.fullmatch(remote.strip())
    page = _PAGES.get(match["host"].lower()) if match else None
    if match is None or page is None:
        return ""
    base = page[0].format(path=match["path"].removesuffix(".git"), commit=commit)
    return f"https://{match['host'].lower()}/{base}{quote(path)}{page[1].format(start=start, end=end)}"
