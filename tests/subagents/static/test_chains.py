"""Chains that no call shows: functions kept in fields, one entry of a table, support code of tests, what is polled."""

from __future__ import annotations

from pathlib import Path

import pytest

from subagents.codebase.snapshot import open_snapshot
from subagents.index.opening import open_index
from subagents.static.callgraph import GraphBuilder
from subagents.static.deeds import bare_verbs
from subagents.static.question import parse_question
from subagents.static.relevance import Relevance
from subagents.static.roles import path_role
from subagents.static.source import Sources
from tests.subagents.static import fixtures
from tests.subagents.static.harness import Run, explore, short

WRAPPED = {
    "site/serving.py": '''"""Serving requests."""


def guarded(handler):
    """Turn errors into replies."""

    def inner(request):
        try:
            return handler(request)
        except ValueError:
            return "400"

    return inner


class Base:
    """What every server does."""

    _chain = None

    def load(self, layers):
        """Put the layers around the innermost handler."""
        respond = self._respond
        handler = guarded(respond)
        for layer in reversed(layers):
            made = layer(handler)
            handler = guarded(made)
        self._chain = handler

    def get_reply(self, request):
        """Return a reply for the request."""
        reply = self._chain(request)
        reply.closed = True
        return reply

    def _respond(self, request):
        """Find the view of a request and call it."""
        view, arguments = self.find_view(request)
        return view(request, *arguments)

    def find_view(self, request):
        """Which view the request means."""
        return self.views[request.path], ()


class Server(Base):
    """What the gateway calls."""

    def __call__(self, environ):
        request = environ["request"]
        return self.get_reply(request)
''',
    "site/extras.py": '''"""Views that show themselves."""


class Panel:
    """A panel of views."""

    def list_views(self, request):
        """All views a request may be shown."""
        return [self.show_view(request, view) for view in request.views]

    def show_view(self, request, view):
        """One view for the request."""
        return (request, view)
''',
}


def _commands(*names: str) -> str:
    """A file of commands, each of which rewrites the client's command as real ones do."""
    bodies = [
        f"/* The {name} command of a client. */\nvoid {name}Command(client *c) {{\n    rewriteClientCommand(c, 1);\n"
        f"    noteClientCommand(c);\n}}\n"
        for name in names
    ]
    return '#include "server.h"\n\n' + "\n".join(bodies)


TABLE = {
    "src/server.h": "typedef struct client client;\nvoid readFromClient(client *c);\nint processCommand(client *c);\n"
    "void call(client *c);\nvoid rewriteClientCommand(client *c, int n);\nvoid noteClientCommand(client *c);\n",
    "src/net.c": """#include "server.h"

/* Rewrite the command of a client for those who follow. */
void rewriteClientCommand(client *c, int n) {
    c->n = n;
}

/* Note the executed command of the client. */
void noteClientCommand(client *c) {
    c->noted = 1;
}

/* Take complete commands out of the buffer of a client. */
void processBuffer(client *c) {
    while (c->length) {
        processCommand(c);
    }
}

/* Called when a client has sent something. */
void readFromClient(client *c) {
    c->length = readBytes(c->fd);
    processBuffer(c);
}

void acceptClient(client *c) {
    setReadHandler(c->fd, readFromClient);
}
""",
    "src/server.c": """#include "server.h"

/* Call the function of the command. */
void call(client *c) {
    c->cmd->proc(c);
}

/* Look the command up, check it, and execute it for the client. */
int processCommand(client *c) {
    c->cmd = lookupCommand(c->argv[0]);
    if (!c->cmd) return 0;
    call(c);
    return 1;
}
""",
    "src/sets.c": _commands("add", "pop", "move", "union", "diff"),
    "src/lists.c": _commands("push", "pull", "trim", "index", "range"),
}


LAZY = {
    "Cargo.toml": '[package]\nname = "clock"\nversion = "1.0.0"\n',
    "src/lib.rs": "pub mod doze;\npub mod users;\npub mod wheel;\n",
    "src/doze.rs": """use crate::wheel::Entry;

/// Waits until the time has come.
pub fn doze(length: u64) -> Doze {
    let entry = enter(length);
    Doze::new_until(entry)
}

fn enter(length: u64) -> Entry {
    let entry = Entry::default();
    entry.set(length);
    entry
}

pin_project! {
    /// What `doze` returns.
    pub struct Doze {
        entry: Entry,
    }
}

impl Doze {
    fn new_until(entry: Entry) -> Doze {
        let made = Doze { entry };
        made.note();
        made
    }

    fn note(&self) {
        println!("made");
        println!("noted");
        println!("done");
    }

    fn poll_due(&mut self, context: &mut Context) -> Poll {
        let entry = lend(self);
        let due = entry.poll_due(context);
        if due {
            return Poll::Ready;
        }
        Poll::Pending
    }
}

impl Future for Doze {
    fn poll(&mut self, context: &mut Context) -> Poll {
        match ready!(self.poll_due(context)) {
            Poll::Ready => Poll::Ready,
            Poll::Pending => Poll::Pending,
        }
    }
}
""",
    "src/wheel.rs": """pub struct Entry {
    at: u64,
}

impl Entry {
    pub fn set(&self, length: u64) {
        register(self, length);
        register(self, length + 1);
        register(self, length + 2);
    }

    /// Whether the time of this entry has come.
    pub fn poll_due(&self, context: &mut Context) -> bool {
        let now = context.now();
        let passed = now > self.at;
        passed
    }
}

pub struct Other {}

impl Other {
    pub fn poll_due(&self, context: &mut Context) -> bool {
        false
    }
}
""",
    "src/users.rs": """use crate::doze::doze;

pub fn interval(length: u64) {
    loop {
        doze(length);
    }
}

pub fn backoff(length: u64) {
    doze(length * 2);
    interval(length);
}
""",
}

HALTED = {
    "net/context.go": """package net

const stopIndex = 63

// Context carries one request through the chain of handlers.
type Context struct {
	index    int
	handlers []Handler
}

type Handler func(*Context)

// Next runs the pending handlers in the chain.
func (c *Context) Next() {
	c.index++
	for c.index < len(c.handlers) {
		c.handlers[c.index](c)
		c.index++
	}
}

// Halt prevents pending handlers from being called.
func (c *Context) Halt() {
	c.index = stopIndex
}

// HaltWith halts and writes a status.
func (c *Context) HaltWith(status int) {
	c.write(status)
	c.Halt()
}

func (c *Context) write(status int) {
	println(status)
}
""",
    "net/routes.go": """package net

// Group is a group of routes with one chain of handlers.
type Group struct {
	handlers []Handler
}

// Handle adds a handler chain for a path.
func (g *Group) Handle(path string, handlers []Handler) {
	chain := g.combineHandlers(handlers)
	g.addHandlerChain(path, chain)
}

// combineHandlers joins the chain of the group with further handlers.
func (g *Group) combineHandlers(handlers []Handler) []Handler {
	return append(g.handlers, handlers...)
}

// addHandlerChain keeps the handler chain of a path.
func (g *Group) addHandlerChain(path string, chain []Handler) {
	println(path, len(chain))
}
""",
}

FIELDS = {
    "store/rows.py": '''"""Rows that are read when somebody looks at them."""

from store.reading import read_everything


class PlainRows:
    """Yields what is stored as rows."""

    def __init__(self, selection):
        self.selection = selection

    def __iter__(self):
        for record in read_everything(self.selection):
            yield record


class Selection:
    """A selection of records, not read yet."""

    def __init__(self):
        self._rows_class = PlainRows
        self._kept = None

    def __iter__(self):
        self._fetch()
        return iter(self._kept)

    def _fetch(self):
        if self._kept is None:
            self._kept = list(self._rows_class(self))
''',
    "store/reading.py": '''"""Reads records."""


def read_everything(selection):
    """Reads the records of a selection from the disk."""
    return open_disk(selection).records


def open_disk(selection):
    """The disk that holds a selection."""
    return selection
''',
}

EXPLAINED = {
    "store/rows.py": '''"""Selections."""

from store.reading import Reader


class Selection:
    """A selection of records."""

    def __iter__(self):
        return self._fetch()

    def _fetch(self):
        return Reader(self).read_records()

    def explain(self):
        return Reader(self).explain_reading()
''',
    "store/reading.py": '''"""Reads records of a selection from the disk."""


class Reader:
    def __init__(self, selection):
        self.selection = selection

    def explain_reading(self):
        """Explains how records of a selection are read from the disk."""
        return self.explain_disk(self.read_records())

    def explain_disk(self, records):
        """What the disk tells of the records of a selection."""
        return records

    def read_records(self):
        """Reads the records of a selection from the disk."""
        return self.disk_records(self.selection)

    def disk_records(self, selection):
        """Records on the disk."""
        return selection
''',
}


def chain(run: Run) -> list[str]:
    """The symbols of the first chain, in calling order."""
    roots = [str(d["symbol"]) for d in run.data("root") if d["chain"] == 0]
    calls = sorted((d for d in run.data("call") if d["chain"] == 0), key=lambda d: int(str(d["order"])))
    return roots + [str(call["to"]) for call in calls]


async def test_a_handler_wrapped_in_layers_is_reached_through_the_field_it_ends_in(tmp_path: Path, cache: Path) -> None:
    run = await explore(fixtures.write(tmp_path, WRAPPED), "How does a request reach a view?", cache)
    assert chain(run) == ["Server.__call__", "Base.get_reply", "Base._respond", "Base.find_view"]
    assert "through `_chain`" in run.answer.markdown


def test_a_class_kept_in_a_field_is_entered_where_the_field_is_called(tmp_path: Path, cache: Path) -> None:
    with open_snapshot(fixtures.write(tmp_path, FIELDS)) as snapshot, open_index(snapshot, cache, extras=()) as index:
        relevance = Relevance(parse_question("How does a selection become records?"))
        builder = GraphBuilder(index, Sources(snapshot), relevance, lambda: None)
        (fetch,) = index.definitions("Selection._fetch")
        assert [(edge.callee[2], edge.via) for edge in builder.callees(fetch)] == [
            ("PlainRows.__iter__", "_rows_class")
        ]


async def test_a_root_that_keeps_saying_what_nobody_asked_for_is_another_story(tmp_path: Path, cache: Path) -> None:
    run = await explore(fixtures.write(tmp_path, EXPLAINED), "How does a selection become disk records?", cache)
    assert chain(run)[0] == "Selection.__iter__", chain(run)


async def test_what_calls_the_entries_of_a_table_is_told_not_one_of_its_entries(tmp_path: Path, cache: Path) -> None:
    run = await explore(fixtures.write(tmp_path, TABLE), "How does a client command get executed?", cache)
    assert chain(run) == ["readFromClient", "processBuffer", "processCommand", "call"]


async def test_what_a_function_returns_to_be_polled_is_told_with_what_polling_does(tmp_path: Path, cache: Path) -> None:
    """The function asked for is the root, not who uses it; its type stands in a macro, a call in another's;
    of three methods named alike the one is meant whose type the file imports."""
    run = await explore(fixtures.write(tmp_path, LAZY), "How does doze work?", cache)
    assert chain(run)[:2] == ["doze", "enter"]
    assert chain(run)[-3:] == ["Doze.poll", "Doze.poll_due", "Entry.poll_due"]
    assert "Doze.new_until" in chain(run)
    assert "by who waits for the returned `Doze`" in run.answer.markdown


async def test_what_does_the_deed_is_told_and_what_heeds_it(tmp_path: Path, cache: Path) -> None:
    """Much is named after handler and chain; only what is called as the verb halts one, and it calls nothing."""
    run = await explore(fixtures.write(tmp_path, HALTED), "How is a handler chain halted?", cache)
    assert chain(run) == ["Context.HaltWith", "Context.Halt"]
    assert "What `Halt` stores in `index` (context.go:24) is read by `Context.Next` (context.go:16)." in short(run)


@pytest.mark.parametrize(
    ("question", "verbs"),
    [
        ("How is a handler chain aborted?", ("abort", "aborte")),
        ("How are queries cached in memory?", ("cach", "cache")),
        ("How is a worker quickly stopped?", ("stopp", "stoppe", "stop")),
        ("How is a message sent?", ()),
        ("How does the parser work?", ()),
        ("Where is a handler chain aborted?", ()),
    ],
)
def test_the_verb_of_a_passive_question_is_a_name_to_look_for(question: str, verbs: tuple[str, ...]) -> None:
    assert bare_verbs(parse_question(question)) == verbs


async def test_what_the_repository_does_not_know_by_name_is_not_here(tmp_path: Path, cache: Path) -> None:
    run = await explore(fixtures.write(tmp_path, WRAPPED), "Where is the Kubernetes view that serves a request?", cache)
    assert not run.answer.found


def test_the_word_between_a_verb_and_its_object_tells_which_one() -> None:
    question = parse_question("How does a worker thread run a spawned task?")
    assert ("run", "task") in question.pairs
    assert "spawned" in question.weak_terms


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("net-test/src/mock.rs", "test"),
        ("tests-integration/src/lib.rs", "test"),
        ("lib/testutils/src/lib.rs", "test"),
        ("internal/servertest/server.go", "test"),
        ("core/src/testFixtures/java/Some.java", "test"),
        ("lib/fakes/clock.py", "test"),
        ("src/fs/mocks.rs", "test"),
        ("src/_pytest/fixtures.py", "code"),
        ("src/latest/latest.go", "code"),
        ("src/Audit.java", "code"),
        ("packages/build/src/build.ts", "code"),
        ("build/lib/copy.py", "code"),
        ("build/copy.py", "vendored"),
    ],
)
def test_code_that_only_serves_tests_is_no_main_code(path: str, role: str) -> None:
    assert path_role(path) == role
