"""Small real repositories that tests explore, written by hand."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A Person",
    "GIT_AUTHOR_EMAIL": "person@example.org",
    "GIT_COMMITTER_NAME": "A Person",
    "GIT_COMMITTER_EMAIL": "person@example.org",
    "GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z",
    "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z",
}

SHOP = {
    "README.md": "# Shop\n\nA tiny shop. Orders go through `checkout`, which charges the card and ships the parcel.\n",
    "pyproject.toml": '[project]\nname = "shop"\nversion = "1"\n[project.scripts]\nshop = "shop.cli:main"\n',
    "shop/__init__.py": '"""A tiny shop."""\n',
    "shop/cli.py": '''"""Command line of the shop."""
from shop.orders import Order, checkout


def main():
    """Read an order and check it out."""
    order = Order(items=["tea"])
    receipt = checkout(order)
    print(receipt)
''',
    "shop/orders.py": '''"""Orders and their checkout."""
from shop.payment import Gateway
from shop.shipping import ship


class Order:
    """What somebody wants to buy."""

    def __init__(self, items):
        self.items = items

    def total(self):
        """Sum of all prices."""
        return sum(price(item) for item in self.items)


def price(item):
    """Price of one item in cents."""
    return 100 + len(item)


def checkout(order):
    """Charge the card, then ship; a declined card raises before anything is shipped."""
    gateway = Gateway()
    payment = gateway.charge(order.total())
    if not payment.accepted:
        raise PaymentDeclined(order)
    return ship(order)


class PaymentDeclined(Exception):
    """The card was declined."""
''',
    "shop/payment.py": '''"""Talks to the payment provider."""

RETRIES = 3


class Payment:
    """The answer of the provider."""

    def __init__(self, accepted):
        self.accepted = accepted


class Gateway:
    """Charges cards; retries when the provider is busy."""

    def charge(self, amount):
        """Charge an amount in cents, at most RETRIES times."""
        for _ in range(RETRIES):
            answer = self._send(amount)
            if answer is not None:
                return answer
        return Payment(accepted=False)

    def _send(self, amount):
        return Payment(accepted=amount < 10_000)
''',
    "shop/shipping.py": '''"""Parcels."""


def ship(order):
    """Pack the order and return a receipt."""
    parcel = pack(order.items)
    return f"receipt for {parcel}"


def pack(items):
    """Put items into one parcel."""
    return ", ".join(items)
''',
    "tests/test_orders.py": """from shop.orders import Order, checkout


def test_checkout_ships_what_was_paid():
    assert checkout(Order(["tea"])) == "receipt for tea"
""",
}


def git(folder: Path, *arguments: str) -> str:
    """Run git there with a fixed identity and date; returns what it printed."""
    done = subprocess.run(["git", "-C", str(folder), *arguments], env=_ENVIRONMENT, capture_output=True, check=True)
    return done.stdout.decode().strip()


def write(folder: Path, files: dict[str, str]) -> None:
    """Write files below a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def make_shop(folder: Path) -> Path:
    """The shop as a git repository with one commit; always the same commit id."""
    folder.mkdir(parents=True, exist_ok=True)
    write(folder, SHOP)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "Open the shop")
    return folder
