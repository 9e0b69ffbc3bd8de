"""Links to cited lines, made from the address of the remote alone."""

import pytest

from subagents.codebase.forges import permalink


@pytest.mark.parametrize(
    ("remote", "link"),
    [
        ("https://github.com/a/b.git", "https://github.com/a/b/blob/c0ffee/x%20y/z.py#L3-L5"),
        ("https://user:secret@github.com/a/b", "https://github.com/a/b/blob/c0ffee/x%20y/z.py#L3-L5"),
        ("git@gitlab.com:a/b/c.git", "https://gitlab.com/a/b/c/-/blob/c0ffee/x%20y/z.py#L3-5"),
        ("ssh://git@codeberg.org:22/a/b.git", "https://codeberg.org/a/b/src/commit/c0ffee/x%20y/z.py#L3-L5"),
        ("https://bitbucket.org/a/b/", "https://bitbucket.org/a/b/src/c0ffee/x%20y/z.py#lines-3:5"),
        ("https://git.example.org/a/b.git", ""),
        ("https://github.com.evil.example/a/b", ""),
        ("/srv/git/a.git", ""),
        ("ext::sh -c touch% /tmp/x", ""),
        ("", ""),
    ],
)
def test_known_forges_are_linked_and_no_credential_gets_in(remote: str, link: str) -> None:
    assert permalink(remote, "c0ffee", "x y/z.py", 3, 5) == link
