"""Figures of the graph: how long it takes to build, to open, to search and to check; how often it finds the right node.

`python bench/knowledge.py` measures with words alone; `--dense` also builds the dense index (minutes) and uses it.
Times are CPU time of this process, so a busy machine does not change them much.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from casemate import settings
from casemate.knowledge import citations, embed
from casemate.knowledge.build import build, sources
from casemate.knowledge.graph import Graph
from casemate.knowledge.node import Kind
from casemate.knowledge.search import Search

QUESTIONS = Path(__file__).parents[1] / "tests" / "knowledge" / "questions" / "tuning.tsv"
"""Written by somebody who saw neither tables nor dossiers; the half that may be looked at while tuning."""
HELDOUT = QUESTIONS.with_name("heldout.tsv")
"""The other half, which nobody looks at; `SHA256SUMS` beside it was committed before any tuning."""
ROUNDS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description="Figures of the knowledge graph.")
    parser.add_argument("--dense", action="store_true", help="build the dense index too (minutes)")
    dense = parser.parse_args().dense
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.sqlite"
        seconds = cpu_s(lambda: build(sources(settings.load().artifacts), path))
        say("build", f"{seconds:.1f} s of CPU, {path.stat().st_size / 1e6:.1f} MB", target="≤ 60 s, ≤ 60 MB")
        say("open", f"{cpu_s(lambda: Graph.open(path).close()) * 1e3:.1f} ms", target="≤ 300 ms")
        with Graph.open(path) as graph:
            words_alone(graph)
            gate(graph)
            if dense:
                with_meaning(graph)


def words_alone(graph: Graph) -> None:
    ids = [node.id for node in graph.nodes(Kind.WEAKNESS)]
    say("node by id", spread(each(graph.node, ids)), target="≤ 2 ms")
    search = Search(graph)
    say("search by id", spread(each(search.search, ids)), target="≤ 2 ms")
    texts = [row["question"] for row in rows(QUESTIONS)]
    say("search, first time", spread(each(lambda text: Search(graph).search(text), texts)))
    say("search", spread(each(search.search, texts * ROUNDS)), target="p95 ≤ 3 ms")
    say("hit@3, words", hits(search))
    say("resident", f"{resident_mb():.0f} MB with graph and search")


def with_meaning(graph: Graph) -> None:
    embedder = embed.E5()
    seconds = cpu_s(lambda: embed.build_index(graph, embedder))
    say(
        "dense index",
        f"{seconds:.0f} s of CPU, {embed.index_path(graph).stat().st_size / 1e6:.1f} MB",
        target="≤ 480 s",
    )
    search = Search(graph, embed.open_dense(graph, embedder))
    say("search with meaning", spread(each(search.search, [row["question"] for row in rows(QUESTIONS)])))
    say("hit@3, words and meaning", hits(search))
    say("resident", f"{resident_mb():.0f} MB with graph, search and embedder")


def gate(graph: Graph) -> None:
    nodes = [*graph.nodes(Kind.WEAKNESS), *graph.nodes(Kind.TECHNIQUE)]
    text = "\n".join(f"{node.id}: {node.name}" for node in nodes)
    citations.examine("CWE-89 SQL", graph)
    seconds = cpu_s(lambda: citations.examine(text, graph))
    say("citation gate", f"{len(nodes) / seconds:.0f} citations/s", target="≥ 5000")


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def hits(search: Search) -> str:
    return "; ".join(f"{path.stem} {_hits(search, rows(path))}" for path in (QUESTIONS, HELDOUT))


def _hits(search: Search, questions: list[dict[str, str]]) -> str:
    asked = Counter(row["language"] for row in questions)
    found = Counter(
        row["language"]
        for row in questions
        if {passage.node for passage in search.search(row["question"], 3)} & set(row["expected"].split(","))
    )
    return ", ".join(f"{language} {found[language]}/{asked[language]}" for language in ("zh", "en"))


def cpu_s(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def each(work: Callable[[str], object], texts: Iterable[str]) -> list[float]:
    return [cpu_s(lambda: work(text)) for text in texts]  # noqa: B023 - called at once


def spread(seconds: list[float]) -> str:
    ordered = sorted(seconds)
    return f"p50 {ordered[len(ordered) // 2] * 1e3:.2f} ms, p95 {ordered[int(len(ordered) * 0.95)] * 1e3:.2f} ms"


def resident_mb() -> float:
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def say(name: str, figure: str, *, target: str = "") -> None:
    print(f"{name:<26} {figure}" + (f"   (target {target})" if target else ""))


if __name__ == "__main__":
    main()
