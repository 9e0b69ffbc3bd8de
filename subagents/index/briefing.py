"""Making the repository brief by code: from the index, its import graph, and a few dozen files.

Packages are the folders that carry the code; how they hang together comes from the import graph between them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from subagents.codebase.textfile import is_document_path, is_test_path
from subagents.codebase.types import Snapshot
from subagents.index.brief import (
    Cycle,
    Dependency,
    Document,
    Hub,
    LanguageShare,
    Package,
    RepositoryBrief,
    TestFolder,
)
from subagents.index.code_index import StoredIndex
from subagents.index.entry_points import entry_points
from subagents.index.languages import GRAMMARS
from subagents.index.purposes import purpose_of_file, purpose_of_folder

_PACKAGES: Final = 24
_SMALLEST_SHARE: Final = 0.06
"""A folder holding more of the code than this is looked into, while there is room for more packages."""


def make_brief(snapshot: Snapshot, index: StoredIndex) -> RepositoryBrief:
    """Everything is read from the index and from a few dozen files."""
    files = index.files()
    code = [(path, language, lines) for path, language, lines in files if language in GRAMMARS]
    sources = [item for item in code if not is_test_path(item[0])] or code
    folders = choose_folders([(path, lines) for path, _, lines in sources])
    edges = [(s, t) for s, t in index.import_edges() if not is_test_path(s) and not is_test_path(t)]
    between = dependencies(index, edges, folders)
    layers, cycles = layers_and_cycles(between, folders)
    return RepositoryBrief(
        files=len(files),
        lines=sum(lines for _, _, lines in files),
        purpose=purpose_of_folder(snapshot, "", [path for path, _, _ in files if "/" not in path]),
        languages=_languages(files),
        packages=_packages(snapshot, sources, folders, layers, between),
        entry_points=entry_points(snapshot, index),
        cycles=cycles,
        hubs=_hubs(snapshot, edges),
        documents=_documents(index, [path for path, _, _ in files]),
        tests=_tests([path for path, _, _ in code if is_test_path(path)]),
        skipped=dict(Counter(skip.reason for skip in index.skipped()).most_common()),
    )


# --- packages ---------------------------------------------------------------------------------------------------


def choose_folders(files: Sequence[tuple[str, int]]) -> tuple[str, ...]:
    """Folders that together hold all files: the largest is split until the pieces are of a size to talk about.

    A file belongs to the deepest chosen folder above it; `` is the root.
    """
    weight: Counter[str] = Counter()
    children: dict[str, set[str]] = defaultdict(set)
    for path, lines in files:
        folder = path.rpartition("/")[0]
        weight[folder] += lines + 1
        while folder:
            above = folder.rpartition("/")[0]
            children[above].add(folder)
            weight[above] += lines + 1
            folder = above
    total = weight[""] or 1
    chosen = {""}
    open_ = {""}
    while open_:
        largest = max(open_, key=lambda folder: (weight[folder], folder))
        open_.discard(largest)
        below = sorted(children[largest], key=lambda folder: -weight[folder])
        if not below:
            continue
        if largest and weight[largest] < _SMALLEST_SHARE * total and len(chosen) >= 6:
            continue
        room = _PACKAGES - len(chosen)
        if room <= 0:
            break
        added = [folder for folder in below[:room] if weight[folder] >= 0.005 * total] or below[:1]
        chosen.update(added)
        open_.update(added)
    used = Counter(package_of(path, chosen) for path, _ in files)
    return tuple(sorted(folder for folder in chosen if used[folder]))


def package_of(path: str, folders: Iterable[str]) -> str:
    chosen = folders if isinstance(folders, (set, frozenset)) else frozenset(folders)
    folder = path.rpartition("/")[0]
    while folder and folder not in chosen:
        folder = folder.rpartition("/")[0]
    return folder


def dependencies(
    index: StoredIndex, edges: Sequence[tuple[str, str]], folders: Sequence[str]
) -> dict[tuple[str, str], Dependency]:
    """Imports between packages, counted, each with the first of them."""
    chosen = frozenset(folders)
    counted: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], tuple[str, str]] = {}
    for source, target in sorted(edges):
        pair = package_of(source, chosen), package_of(target, chosen)
        if pair[0] != pair[1] and pair[0] in chosen and pair[1] in chosen:
            counted[pair] += 1
            first.setdefault(pair, (source, target))
    made = {}
    for pair, count in counted.items():
        source, target = first[pair]
        line = next((edge.line for edge in index.imports(source) if edge.target == target), 1)
        made[pair] = Dependency(source=pair[0], target=pair[1], imports=count, path=source, line=line)
    return made


def layers_and_cycles(
    between: Mapping[tuple[str, str], Dependency], folders: Sequence[str]
) -> tuple[dict[str, int], tuple[Cycle, ...]]:
    """Layers of the condensation: packages in a cycle share one. A few imports upwards do not make a cycle: of two
    packages that import each other, the direction with ten times the imports counts."""
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(folders)
    for (source, target), dependency in between.items():
        back = between.get((target, source))
        if back is None or dependency.imports * 10 > back.imports:
            graph.add_edge(source, target)
    condensed = nx.condensation(graph)
    levels: dict[int, int] = {}
    for node in reversed(list(nx.topological_sort(condensed))):
        levels[node] = max((levels[below] + 1 for below in condensed.successors(node)), default=0)
    layers = {folder: levels[node] for node, data in condensed.nodes(data=True) for folder in data["members"]}
    cycles = []
    for _, data in condensed.nodes(data=True):
        members = data["members"]
        if len(members) > 1:
            ring = nx.find_cycle(graph.subgraph(members), source=min(members))
            steps = tuple(between[source, target] for source, target, *_ in ring)
            cycles.append(Cycle(packages=tuple(sorted(members)), steps=steps))
    cycles.sort(key=lambda cycle: (-len(cycle.packages), cycle.packages))
    return layers, tuple(cycles)


def _packages(
    snapshot: Snapshot,
    sources: Sequence[tuple[str, str | None, int]],
    folders: Sequence[str],
    layers: Mapping[str, int],
    between: Mapping[tuple[str, str], Dependency],
) -> tuple[Package, ...]:
    chosen = frozenset(folders)
    held: dict[str, list[tuple[str, str | None, int]]] = defaultdict(list)
    for item in sources:
        held[package_of(item[0], chosen)].append(item)
    by_folder: dict[str, list[str]] = defaultdict(list)
    for path in snapshot.files():
        by_folder[path.rpartition("/")[0]].append(path)
    made = []
    for folder in folders:
        items = held[folder]
        languages = Counter()  # type: Counter[str]
        for _, language, lines in items:
            languages[language or ""] += lines
        purpose = purpose_of_folder(snapshot, folder, by_folder[folder] or [items[0][0]])
        uses = sorted(
            (d for (source, _), d in between.items() if source == folder), key=lambda d: (-d.imports, d.target)
        )
        made.append(
            Package(
                folder=folder or ".",
                files=len(items),
                lines=sum(lines for _, _, lines in items),
                language=languages.most_common(1)[0][0],
                purpose=purpose.text,
                path=purpose.path,
                line=purpose.line,
                layer=layers.get(folder, 0),
                uses=tuple(uses[:4]),
            )
        )
    return tuple(sorted(made, key=lambda package: (-package.layer, -package.lines, package.folder)))


# --- the rest ---------------------------------------------------------------------------------------------------


def _languages(files: Sequence[tuple[str, str | None, int]]) -> tuple[LanguageShare, ...]:
    counts: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for _, language, count in files:
        counts[language or "other"] += 1
        lines[language or "other"] += count
    return tuple(
        LanguageShare(language=language, files=counts[language], lines=total)
        for language, total in lines.most_common(12)
    )


def _hubs(snapshot: Snapshot, edges: Sequence[tuple[str, str]]) -> tuple[Hub, ...]:
    importers = Counter(target for _, target in edges)
    hubs = []
    for path, count in sorted(importers.items(), key=lambda item: (-item[1], item[0]))[:10]:
        if count > 1:
            purpose = purpose_of_file(snapshot, path)
            hubs.append(Hub(path=path, line=purpose.line, importers=count, purpose=purpose.text))
    return tuple(hubs)


def _documents(index: StoredIndex, paths: Sequence[str]) -> tuple[Document, ...]:
    """Nearest the root first; a README or an index speaks for its folder."""

    def weight(path: str) -> tuple[int, bool, str]:
        name = path.rpartition("/")[2].lower()
        return path.count("/"), not name.startswith(("readme", "index", "architecture", "contributing", "design")), path

    made = []
    for path in sorted((p for p in paths if is_document_path(p) and not is_test_path(p)), key=weight)[:14]:
        titled = next((section for section in index.doc_sections(path) if section.title), None)
        made.append(Document(path=path, line=titled.start if titled else 1, title=titled.title[:100] if titled else ""))
    return tuple(made)


def _tests(paths: Sequence[str]) -> tuple[TestFolder, ...]:
    folders: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        parts = path.split("/")
        depth = next((n for n, part in enumerate(parts[:-1]) if "test" in part.lower() or part == "spec"), None)
        folders["/".join(parts[: depth + 1]) if depth is not None else "/".join(parts[:1]) or "."].append(path)
    ranked = sorted(folders.items(), key=lambda item: (-len(item[1]), item[0]))[:8]
    return tuple(TestFolder(folder=folder, files=len(held), path=held[0], line=1) for folder, held in ranked)
