"""Small repositories written for these tests: a web framework, a command line tool, a Go router, a Rust queue."""

from __future__ import annotations

import subprocess
from pathlib import Path

WEB = {
    "README.md": """# Tinyweb

Tinyweb turns a request into a page. A request enters `Application.handle_request`, which finds the page function
that `Application.page` registered and calls it.
""",
    "pyproject.toml": '[project]\nname = "tinyweb"\n\n[project.scripts]\ntinyweb = "tinyweb.server:main"\n',
    "tinyweb/__init__.py": '"""A web framework small enough to read."""\n\nfrom .application import Application\n',
    "tinyweb/application.py": '''"""The application: pages, and how a request reaches them."""

from tinyweb.scope import Scope


class Application:
    """Holds pages by path."""

    def __init__(self):
        self.page_functions = {}
        self.guards = []

    def page(self, path):
        """Register a page function under a path."""

        def decorator(function):
            self.add_page(path, function)
            return function

        return decorator

    def add_page(self, path, function):
        """Put a page function into the table."""
        self.page_functions[path] = function

    def __call__(self, environ):
        """What the server calls."""
        return self.handle_request(environ)

    def handle_request(self, environ):
        """Handle one request from environ to reply."""
        scope = Scope(environ)
        scope.open()
        try:
            reply = self.check_guards(scope)
            if reply is None:
                reply = self.dispatch_page(scope)
        except KeyError as error:
            reply = self.missing_page(error)
        return self.finish_reply(reply)

    def check_guards(self, scope):
        """Run guards before the page; the first that returns something wins."""
        for guard in self.guards:
            reply = guard(scope)
            if reply is not None:
                return reply
        return None

    def dispatch_page(self, scope):
        """Call the page function that matched the request."""
        return self.page_functions[scope.matched_path](scope)

    def missing_page(self, error):
        return "404"

    def finish_reply(self, reply):
        """Make a reply out of what the page function returned."""
        return str(reply)
''',
    "tinyweb/scope.py": '''"""The scope of one request."""


class Scope:
    """Lives as long as a request."""

    def __init__(self, environ):
        self.environ = environ
        self.matched_path = None

    def open(self):
        """Make this scope the current one."""
        self.find_match()

    def find_match(self):
        """Match the request's path."""
        self.matched_path = self.environ["PATH"].rstrip("/") or "/"
''',
    "tinyweb/server.py": '''"""A server for development."""

import socketserver

from tinyweb.application import Application

DEFAULT_TIMEOUT = 30


def main():
    """Start serving."""
    serve(Application())


def serve(application, timeout=DEFAULT_TIMEOUT):
    socketserver.run(application, timeout)
''',
    "tests/test_application.py": '''from tinyweb.application import Application


def test_request_reaches_page_function():
    """The page registered for a path is called."""
    app = Application()
    app.add_page("/", lambda scope: "hello")
    assert app.handle_request({"PATH": "/"}) == "hello"
''',
}

TOOL = {
    "README.md": "# Notekeeper\n\nKeeps notes. `notekeeper add TEXT` writes a note, `notekeeper list` prints them.\n",
    "notekeeper/__init__.py": '"""Keeps notes in a file."""\n',
    "notekeeper/cli.py": '''"""The command line."""

import sys

from notekeeper.store import NoteStore


def run_add(store, words):
    """Write a note."""
    store.append_note(" ".join(words))


def run_list(store, words):
    """Print the notes."""
    for note in store.read_notes():
        print(note)


COMMANDS = {"add": run_add, "list": run_list}


def main(arguments=None):
    """Read the command and run it."""
    name, *words = arguments or sys.argv[1:]
    store = NoteStore("notes.txt")
    COMMANDS[name](store, words)
''',
    "notekeeper/store.py": '''"""Where notes are kept."""

RETRY_LIMIT = 3


class NoteStore:
    """Notes in one file, a line each."""

    def __init__(self, path):
        self.path = path

    def append_note(self, text):
        """Add one note at the end."""
        with open(self.path, "a") as file:
            file.write(text + "\\n")

    def read_notes(self):
        """All notes in order."""
        with open(self.path) as file:
            return file.read().splitlines()


class MemoryStore(NoteStore):
    """Notes that are gone with the process."""

    def append_note(self, text):
        self.path.append(text)
''',
    "notekeeper/export.py": '''"""Writes notes as a page."""

from notekeeper.store import NoteStore


def export_notes(store: NoteStore):
    """All notes as one text."""
    return "\\n".join(store.read_notes())
''',
    "tests/test_store.py": """from notekeeper.store import NoteStore


def test_append_note_keeps_order(tmp_path):
    store = NoteStore(tmp_path / "notes")
    store.append_note("a")
    assert store.read_notes() == ["a"]
""",
}

ROUTER = {
    "go.mod": "module example.org/router\n\ngo 1.22\n",
    "router.go": """// Package router finds the handler of a request.
package router

// Handler serves one request.
type Handler func(r *Request) string

// Request is what came in.
type Request struct {
	Path     string
	handlers []Handler
}

// Router keeps handlers by path.
type Router struct {
	tree *node
}

// ServeRequest finds the handler of a request and runs it.
func (router *Router) ServeRequest(request *Request) string {
	found := router.tree.lookup(request.Path)
	if found == nil {
		return notFound(request)
	}
	request.handlers = found
	return request.Advance()
}

// Advance runs the next handler of the request.
func (request *Request) Advance() string {
	return request.handlers[0](request)
}

// Handle registers a handler for a path.
func (router *Router) Handle(path string, handler Handler) {
	router.tree.insert(path, handler)
}

func notFound(request *Request) string {
	return "404"
}
""",
    "tree.go": """package router

type node struct {
	children map[string][]Handler
}

// lookup walks down to what is stored for a path.
func (n *node) lookup(path string) []Handler {
	return n.children[path]
}

func (n *node) insert(path string, handler Handler) {
	n.children[path] = append(n.children[path], handler)
}
""",
    "router_test.go": """package router

import "testing"

func TestServeRequestRunsHandler(t *testing.T) {
	router := &Router{tree: &node{children: map[string][]Handler{}}}
	router.Handle("/", func(r *Request) string { return "ok" })
	if router.ServeRequest(&Request{Path: "/"}) != "ok" {
		t.Fatal("not run")
	}
}
""",
}

QUEUE = {
    "Cargo.toml": '[package]\nname = "queue"\nversion = "0.1.0"\n',
    "src/lib.rs": "//! A queue of jobs and the worker that runs them.\n\npub mod job;\npub mod worker;\n",
    "src/job.rs": """//! One job.

/// Work to be done once.
pub struct Job {
    pub name: String,
}

impl Job {
    /// Execute this job to its end.
    pub fn execute(&self) -> usize {
        self.name.len()
    }
}
""",
    "src/worker.rs": """//! Runs jobs.

use crate::job::Job;

pub struct Worker {
    jobs: Vec<Job>,
}

impl Worker {
    /// Run every queued job.
    pub fn run_jobs(&self) -> usize {
        let mut done = 0;
        for job in &self.jobs {
            done += self.run_one(job);
        }
        done
    }

    fn run_one(&self, job: &Job) -> usize {
        job.execute()
    }
}
""",
}


def write(folder: Path, files: dict[str, str]) -> Path:
    """The files in a fresh git repository with one commit."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    environment = {
        "PATH": "/usr/bin:/bin:/usr/local/bin", "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org",
        "GIT_AUTHOR_DATE": "2024-05-01T12:00:00Z", "GIT_COMMITTER_DATE": "2024-05-01T12:00:00Z",
    }  # fmt: skip
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "Write it down"]):
        subprocess.run(["git", *command], cwd=folder, env=environment, check=True, capture_output=True)
    return folder
