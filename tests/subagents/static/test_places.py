"""Where something is, and who depends on it: keys, handed-over functions, packages, implementers, honest absence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.subagents.static import fixtures
from tests.subagents.static.harness import explore, short

SHOP = {
    "shop/__init__.py": '"""A shop."""\n',
    "shop/application.py": '''"""The application and its settings."""

from shop.settings import Setting


class Application:
    """Sells things."""

    currency = Setting("SHOP_CURRENCY")
    secret_word = Setting("SECRET_WORD")

    default_settings = {
        "SECRET_WORD": None,
        "SHOP_CURRENCY": "EUR",
    }

    def price_of(self, item):
        """What an item costs."""
        return f"{item.price} {self.currency}"

    def build_pages(self, pages):
        """Fill what templates may call."""
        pages.names.update(price_of=self.price_of)
        return pages

    def forgotten_helper(self):
        """Nobody needs this."""
        return None

    def announce(self):
        """Looked up by its name only."""
        return "announced"
''',
    "shop/settings.py": '''"""A setting of the application."""


class Setting:
    """Reads one key of the settings."""

    def __init__(self, key):
        self.key = key
''',
    "shop/signing.py": '''"""Signs what a customer carries."""


def make_signer(application):
    """A signer with the application's word, see SECRET_WORD."""
    if not application.secret_word:
        return None
    return application.secret_word.encode()


def carry(application):
    """Hand a signer over."""
    return make_signer(application)


def announce_all(application):
    """Tell everybody."""
    return getattr(application, "announce")()
''',
    "shop/till.py": '''"""The till."""

from shop.signing import (
    announce_all,
    carry,
)


def open_till(application):
    """Start the day."""
    return carry(application), announce_all(application)
''',
    "tests/test_settings.py": """from shop.application import Application

SECRET_WORD = "configured"


def test_secret_word():
    application = Application()
    application.secret_word = SECRET_WORD
    assert application.secret_word
""",
}

PAGES = {
    "go.mod": "module example.com/pages\n\ngo 1.21\n",
    "server.go": """package pages

import "example.com/pages/render"

// Serve writes one page.
func Serve(page render.Render) error {
	return page.Write()
}
""",
    "render/render.go": """package render

// Render is implemented by every kind of page.
type Render interface {
	Write() error
	Kind() string
}
""",
    "render/text.go": """package render

// Text is a page of plain text.
type Text struct{}

// Write writes it.
func (t Text) Write() error { return nil }

// Kind is what it is.
func (t Text) Kind() string { return "text" }
""",
    "render/half.go": """package render

// Half has only one of the methods.
type Half struct{}

// Write writes it.
func (h *Half) Write() error { return nil }
""",
}

SUMS = {
    "src/sum16.h": "int sum16(const char *text, int length);\n",
    "src/sum16.c": '#include "sum16.h"\n\nint sum16(const char *text, int length) {\n    return text[0] + length;\n}\n',
    "src/sum16test.c": '#include "sum16.h"\n\nint sum16Test(void) {\n    return sum16("a", 1);\n}\n',
}

PARCELS = {
    "README.md": "# Parcels\n\nSends parcels.\n",
    ".github/workflows/check.yml": "name: check\njobs:\n  check:\n    timeout-minutes: 10\n",
    "parcels/config/routes.toml": '[routes]\nlist = "by-street"\n\n[colors]\nlist = "blue"\n',
    "parcels/__init__.py": '"""Sends parcels."""\n',
    "parcels/errors.py": '''"""What can go wrong."""


class Timeout(Exception):
    """Nobody answered in time."""
''',
    "parcels/carrier.py": '''"""Carries parcels."""

import logging

from parcels.errors import Timeout

log = logging.getLogger(__name__)


class Carrier:
    """One who carries."""

    def send(
        self,
        parcel,
        timeout=None,
        retries=3,
    ):
        """Send one parcel."""
        if timeout == 0:
            raise Timeout("no time was given")
        return parcel, timeout, retries

    def list_routes(self, settings):
        """All routes in the order that the settings ask for."""
        return settings.text("routes.list")


def update_route_map(route_map):
    """Bring the route map up to date."""
    for stop in route_map.stops:
        update_route_map(stop)


class RouteMap:
    """Where to go."""

    def __init__(self):
        self.stops = []

    def add_route(self, street):
        """Put a street in its place."""
        self.stops.append(street)


def read_streets(streets):
    """Take in all streets."""
    route_map = RouteMap()
    for street in streets:
        route_map.add_route(street)
    return route_map


def daily_cleanup_limited(today):
    """Whether cleaning up must wait."""
    if today.cleaned:
        log.warning(
            "The daily cleanup was triggered already, wait %s", today.left
        )
    return today.cleaned


def start_daily_cleanup(store):
    """Clean up in the background."""
    store.clear()


def every_hour(store, today):
    """What the clock calls."""
    if not daily_cleanup_limited(today):
        start_daily_cleanup(store)


def on_command(store):
    """What a person calls."""
    start_daily_cleanup(store)
''',
}

SCALES = {
    "README.md": """# Scales

- [Weight limit](#weight-limit) of boxes
- [Weight of boxes](#weight-of-boxes) and other limits
- [Paper](#paper) for boxes without any limit

## Paper

Boxes are made of paper that comes in rolls, and wrapping them takes a while when the
weight of paper is high; there is hardly more to say of it than this.

## Weighing

Boxes are put on the scale one by one.
They are pushed in from the left.
A lamp tells whether the scale is free.
Nobody may touch the scale.
The clerk writes every box down.
The weight limit is checked before
a box goes on to the next room.
""",
    "scales/__init__.py": '"""Scales."""\n',
    "scales/scale.py": '''"""The scale."""


def weigh_box(box):
    """How heavy a box is."""
    return box.weight


def check_weight_limit(box, limit):
    """Whether a box may go on."""
    return weigh_box(box) <= limit


def expire_boxes(boxes):
    """Boxes that nobody fetched expire."""
    for box in boxes:
        drop_box(box)


def drop_box(box):
    """Throw one box away."""
    box.gone = True
''',
    "scales/heavy.rs": "cfg_heavy! {\n    pub struct HeavyBox {\n        weight: u64,\n    }\n}\n",
    "scales/room.rs": "use crate::heavy::HeavyBox;\n\npub fn take(_: HeavyBox) {}\n",
    "tests/conftest.py": "import pytest\n\n\n@pytest.fixture\ndef weigh_box():\n    return lambda box: 1\n",
    "tests/test_scale.py": """class TestWeighing:
    def test_weighing_boxes(self, clerk):
        assert clerk.of_day()
""",
    "tests/expire.tcl": "test {Boxes expire one by one} {\n    assert_equal 1 1\n}\n",
}

MAIL = {
    "mail/client.py": '''"""A client that follows forwarded letters."""

DEFAULT_FORWARD_LIMIT = 20


class Client:
    """Sends letters."""

    def __init__(self, max_forwards=DEFAULT_FORWARD_LIMIT):
        self.max_forwards = max_forwards

    def send(self, letter, stamps):
        """Sends a letter."""
        return self._send_following_forwards(letter, [])

    def put(self, letter, stamps=None):
        """Puts a letter into the box."""
        return self.send(letter, stamps)

    def _send_following_forwards(self, letter, history):
        while True:
            if len(history) > self.max_forwards:
                raise RuntimeError("too often")
            history.append(letter)

    def enforce_slash(self, address):
        """Addresses end in a slash."""
        return address.rstrip("/") + "/"
''',
    "mail/keeping.py": '''"""Keeps certificates fresh."""


class Keeper:
    def needs_renewal(self, certificate):
        """Whether a certificate is within its renewal window."""
        return certificate.age > 30

    def renew_certs(self, certs):
        for cert in certs:
            if self.needs_renewal(cert):
                cert.age = 0
''',
}

REPOSITORIES = {"mail": MAIL, "scales": SCALES, "parcels": PARCELS, "shop": SHOP, "pages": PAGES, "sums": SUMS}


@pytest.fixture(scope="module")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: fixtures.write(tmp_path_factory.mktemp(name), files) for name, files in REPOSITORIES.items()}


async def test_a_key_is_answered_by_the_code_that_names_it_not_by_a_constant_of_a_test(
    repositories: dict[str, Path], cache: Path
) -> None:
    run = await explore(repositories["shop"], "Where is SECRET_WORD used?", cache)
    told = short(run)
    assert "`SECRET_WORD` is a key" in told, told
    assert 'shop/application.py:13: `"SECRET_WORD": None,`' in told, told
    assert "`Application.secret_word`" in told
    assert "`make_signer`" in told
    assert "tests/test_settings.py:3" not in told


async def test_a_function_handed_over_without_a_call_is_a_use_of_it(repositories: dict[str, Path], cache: Path) -> None:
    run = await explore(repositories["shop"], "What would break if price_of changed?", cache)
    assert "names it without a call" in short(run), short(run)
    assert "`Application.build_pages` shop/application.py:23" in run.answer.markdown


async def test_a_name_in_a_string_forbids_to_say_that_nothing_uses_it(
    repositories: dict[str, Path], cache: Path
) -> None:
    named = short(await explore(repositories["shop"], "What calls Application.announce?", cache))
    assert "1 line elsewhere holds a name spelled so, e.g. shop/signing.py:18" in named, named
    alone = short(await explore(repositories["shop"], "What calls forgotten_helper?", cache))
    assert "No other line of code in this snapshot holds its name." in alone


async def test_an_import_over_several_lines_is_an_import_and_no_other_use(
    repositories: dict[str, Path], cache: Path
) -> None:
    told = short(await explore(repositories["shop"], "What would break if carry changed?", cache))
    assert "1 file of code calls it and 1 file of code imports it." in told, told
    assert "without a call" not in told


async def test_a_package_is_answered_with_its_importers_and_the_type_of_that_name_beside_it(
    repositories: dict[str, Path], cache: Path
) -> None:
    text = (await explore(repositories["pages"], "What depends on render?", cache)).answer.markdown
    assert "`render` is a folder of 3 files. 1 file of code imports it." in text, text
    assert "server.go:3" in text
    assert "`Render` is an interface at render/render.go:4-7" in text
    only = (await explore(repositories["pages"], "What depends on the render package?", cache)).answer.markdown
    assert "is an interface" not in only


async def test_go_types_with_every_method_of_an_interface_implement_it(
    repositories: dict[str, Path], cache: Path
) -> None:
    run = await explore(repositories["pages"], "Who implements Render?", cache)
    assert "1 type implements it (`Text`)" in short(run), short(run)
    assert "Half" not in short(run)


async def test_a_prototype_in_a_header_is_no_second_thing_of_that_name(
    repositories: dict[str, Path], cache: Path
) -> None:
    run = await explore(repositories["sums"], "What would break if sum16 changed?", cache)
    assert "`sum16` is a function at src/sum16.c:3-5" in short(run), short(run)
    assert "The other of that name" not in run.answer.markdown
    assert "`sum16Test`" in run.answer.markdown


async def test_a_default_is_the_parameter_that_has_it_not_a_line_of_a_build_service(
    repositories: dict[str, Path], cache: Path
) -> None:
    run = await explore(repositories["parcels"], "Where is the default timeout set?", cache)
    assert short(run) == " `timeout` is `None` by default, as a parameter of `Carrier.send` (parcels/carrier.py:16)."
    assert ".github" not in run.answer.markdown


async def test_a_default_in_a_file_is_found_by_file_section_and_key_with_the_code_that_reads_it(
    repositories: dict[str, Path], cache: Path
) -> None:
    told = short(await explore(repositories["parcels"], "Where is the default list of routes defined?", cache))
    assert '`routes.list` stands at parcels/config/routes.toml:2: `list = "by-street"`' in told, told
    assert "`Carrier.list_routes` reads it (parcels/carrier.py:26)" in told
    assert "blue" not in told


async def test_what_does_it_comes_before_what_only_has_the_nouns(repositories: dict[str, Path], cache: Path) -> None:
    told = short(await explore(repositories["parcels"], "Where is the route map built?", cache))
    assert told.startswith(" `RouteMap.add_route`"), told
    assert "It is called in `read_streets`" in told


async def test_what_checks_is_the_condition_whatever_its_function_is_called(
    repositories: dict[str, Path], cache: Path
) -> None:
    told = short(await explore(repositories["mail"], "Where is the forward limit enforced?", cache))
    assert told.strip().startswith("`Client._send_following_forwards`"), told
    assert "`if len(history) > self.max_forwards:`" in told


async def test_a_verb_without_a_group_is_looked_for_in_its_bare_form(
    repositories: dict[str, Path], cache: Path
) -> None:
    told = short(await explore(repositories["mail"], "Where are certificates renewed?", cache))
    assert told.strip().startswith("`Keeper.renew_certs`"), told


async def test_a_verb_of_the_same_meaning_alone_is_no_answer(repositories: dict[str, Path], cache: Path) -> None:
    told = short(await explore(repositories["mail"], "Where are stamps persisted?", cache))
    assert told.strip().startswith("Not found"), told


async def test_what_triggers_it_is_named_and_no_message_is_a_telling_line(
    repositories: dict[str, Path], cache: Path
) -> None:
    run = await explore(repositories["parcels"], "Where is the daily cleanup triggered?", cache)
    told = short(run)
    assert told.startswith(" `start_daily_cleanup`"), told
    assert "`every_hour` (carrier.py" in told
    assert "`on_command` (carrier.py" in told
    assert "wait %s" not in run.answer.markdown


async def test_a_fixture_of_the_same_name_is_no_test_of_it(repositories: dict[str, Path], cache: Path) -> None:
    run = await explore(repositories["scales"], "What would break if weigh_box changed?", cache)
    tests = [str(data["symbol"]) for data in run.data("test")]
    assert "TestWeighing.test_weighing_boxes" in tests, tests
    assert "weigh_box" not in tests


async def test_a_test_that_is_no_function_is_found_by_its_title(repositories: dict[str, Path], cache: Path) -> None:
    run = await explore(repositories["scales"], "What would break if expire_boxes changed?", cache)
    assert "`Boxes expire one by one` (tests/expire.tcl:1)" in run.answer.markdown, run.answer.markdown


async def test_a_quote_is_about_the_subject_and_shows_the_lines_that_say_it(
    repositories: dict[str, Path], cache: Path
) -> None:
    run = await explore(repositories["scales"], "Where is the weight limit checked?", cache)
    quotes = [str(data["quote"]) for data in run.data("doc")]
    assert any("The weight limit is checked before" in quote for quote in quotes), quotes
    assert not any("(#weight-limit)" in quote or "wrapping" in quote for quote in quotes), quotes


async def test_a_definition_that_no_grammar_sees_is_not_called_a_key(
    repositories: dict[str, Path], cache: Path
) -> None:
    told = short(await explore(repositories["scales"], "What depends on HeavyBox?", cache))
    assert "`HeavyBox` is defined at scales/heavy.rs:2" in told, told
