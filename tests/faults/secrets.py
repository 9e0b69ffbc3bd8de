"""Secrets that the tests plant: of each kind one, made by the rules of its kind and never valid anywhere.

They are put together when the tests run, so that no scanner takes this file for a leak.
"""

from __future__ import annotations

import base64
import hashlib
import string
from pathlib import Path

from tests.repositories import git, write

_ALPHABET = string.ascii_letters + string.digits


def _noise(name: str, length: int, alphabet: str = _ALPHABET) -> str:
    """The same characters each time, as random as a key's."""
    out, block = "", 0
    while len(out) < length:
        out += "".join(alphabet[b % len(alphabet)] for b in hashlib.sha256(f"{name}{block}".encode()).digest())
        block += 1
    return out[:length]


def _private_key() -> str:
    body = base64.b64encode(_noise("pem", 600).encode()).decode()
    lines = "\n".join(body[n : n + 64] for n in range(0, len(body), 64))
    return f"-----BEGIN RSA PRIVATE {'KEY'}-----\n{lines}\n-----END RSA PRIVATE {'KEY'}-----"


_DIGITS = "0123456789abcdef"
_JWT = ".".join(
    base64.urlsafe_b64encode(part).decode().rstrip("=")
    for part in (b'{"alg":"HS256","typ":"JWT"}', b'{"sub":"1234567890","admin":true}', _noise("jwt", 32).encode())
)
SECRETS: dict[str, str] = {
    "aws_key": "AK" + "IA" + _noise("aws", 16, string.ascii_uppercase + "234567"),
    "anthropic_key": "sk-" + "ant-api03-" + _noise("anthropic", 80),
    "github_token": "gh" + "p_" + _noise("github", 36),
    "gitlab_token": "gl" + "pat-" + _noise("gitlab", 20),
    "slack_token": "xo" + "xb-" + _noise("slack", 12, string.digits) + "-" + _noise("slack2", 24),
    "stripe_key": "sk_" + "live_" + _noise("stripe", 24),
    "gcp_key": "AI" + "za" + _noise("gcp", 35),
    "huggingface_token": "h" + "f_" + _noise("hf", 34),
    "npm_token": "np" + "m_" + _noise("npm", 36),
    "jwt": _JWT,
    "url_password": _noise("url", 18),
    "assigned_secret": _noise("assigned", 20),
    "card_number": "4" + "539 1488 0343 6467",
    "mailgun_key": "key-" + _noise("mailgun", 32, _DIGITS),
    "sendgrid_key": "SG." + _noise("sg", 22) + "." + _noise("sg2", 43),
    "private_key": _private_key(),
}
_INNER = {"private_key": SECRETS["private_key"].split("\n")[3]}
"""What must not be found anywhere, where it is not the whole."""


def leaks(data: bytes) -> list[str]:
    """Kinds of planted secrets that the bytes hold, also as JSON or base64 writes them."""
    found = []
    for kind, secret in SECRETS.items():
        text = _INNER.get(kind, secret)
        forms = {text, text.replace("/", "\\/"), base64.b64encode(secret.encode()).decode()[:-4]}
        if any(form.encode() in data for form in forms):
            found.append(kind)
    return found


def make_leaky(folder: Path) -> Path:
    """A repository whose code, comments, names, documentation and commit messages hold every secret."""
    s = SECRETS
    key = "\n".join(f"    {line}" for line in s["private_key"].split("\n"))
    files = {
        "README.md": f"# Leaky\n\nUse `{s['npm_token']}` to publish. Retry is configured in `client/settings.py`.\n",
        "client/__init__.py": f'"""Client; token {s["gitlab_token"]}."""\n',
        "client/settings.py": (
            f'AWS = "{s["aws_key"]}"\nRETRIES = 3  # retry is configured here, see {s["github_token"]}\n'
            f'DATABASE = "postgres://app:{s["url_password"]}@db.internal/app"\n'
            f'PASSWORD = "{s["assigned_secret"]}"\nCARD = "{s["card_number"]}"\nMAIL = "{s["mailgun_key"]}"\n'
        ),
        "client/connect.py": (
            "from client.settings import AWS, RETRIES\n\n\n"
            f"def connect(credentials='{s['stripe_key']}'):\n"
            f'    """Connect with the credentials, e.g. {s["anthropic_key"]}."""\n'
            f"    token = '{s['slack_token']}'\n"
            "    for _ in range(RETRIES):\n        send(token, AWS)\n\n\n"
            f"def send(token, key, bearer='{s['jwt']}', google='{s['gcp_key']}'):\n"
            f'    """Send; {s["huggingface_token"]} is not needed."""\n    return token\n\n\n'
            f"def key():\n    '''Returns:\n{key}\n    '''\n    return '{s['sendgrid_key']}'\n"
        ),
        "docs/tokens.md": f"# Tokens\n\nconnect reads credentials, e.g. {s['github_token']}.\n",
    }
    write(folder, files)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", f"Configure retry\n\nToken {s['gitlab_token']} and {s['stripe_key']}")
    return folder
