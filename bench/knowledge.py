"""Figures of the graph: how long it takes to build, to open, to search and to check; how often it finds the right node.

`python bench/knowledge.py` measures with words alone; `--dense` also builds the dense index (minutes) and uses it;
`--heldout` asks the questions that nobody looks at while tuning. Times are CPU time of this process, so a busy machine
does not change them much. CVE texts are taken from the shared data, where it lies beside the repository.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from casemate import settings
from casemate.knowledge import citations, embed
from casemate.knowledge.build import build, sources
from casemate.knowledge.graph import Graph
from casemate.knowledge.node import Kind, State
from casemate.knowledge.search import Search

ROOT = Path(__file__).parents[1]
QUESTIONS = ROOT / "tests" / "knowledge" / "questions" / "tuning.tsv"
"""Written by somebody who saw neither tables nor dossiers; the half that may be looked at while tuning."""
HELDOUT = QUESTIONS.with_name("heldout.tsv")
"""The other half, which nobody looks at; `SHA256SUMS` beside it was committed before any tuning."""
VULNERABILITIES = ROOT.parent / "shared" / "data" / "evidence" / "cisa-vulnrichment-sample-2024.jsonl.gz"
"""CVE descriptions with the weakness that CISA gave them."""
PLANTED = ROOT / "tests" / "knowledge" / "planted"
"""Citations with planted faults, and right ones, each with its grade."""
ROUNDS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description="Figures of the knowledge graph.")
    parser.add_argument("--dense", action="store_true", help="build the dense index too (minutes)")
    parser.add_argument("--heldout", action="store_true", help="ask the held-out questions too")
    chosen = parser.parse_args()
    sets = (QUESTIONS, HELDOUT) if chosen.heldout else (QUESTIONS,)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.sqlite"
        seconds = cpu_s(lambda: build(sources(settings.load().artifacts), path))
        say("build", f"{seconds:.1f} s of CPU, {path.stat().st_size / 1e6:.1f} MB", target="≤ 60 s, ≤ 60 MB")
        say("open", f"{cpu_s(lambda: Graph.open(path).close()) * 1e3:.1f} ms", target="≤ 300 ms")
        with Graph.open(path) as graph:
            say("dangling edges", str(graph.census().dangling), target="0")
            words_alone(graph, sets)
            gate(graph)
            if chosen.dense:
                with_meaning(graph, sets)


def words_alone(graph: Graph, sets: Sequence[Path]) -> None:
    ids = [node.id for node in graph.nodes(Kind.WEAKNESS)]
    say("node by id", spread(each(graph.node, ids)), target="≤ 2 ms")
    search = Search(graph)
    say("search by id", spread(each(search.search, ids)), target="≤ 2 ms")
    texts = [row["question"] for row in rows(QUESTIONS)]
    say("search, first time", spread(each(search.search, texts)))
    say("search", spread(each(search.search, texts * ROUNDS)), target="p95 ≤ 3 ms")
    say_hits(search, graph, sets=sets, how="words")
    say("resident", f"{resident_mb():.0f} MB with graph and search")


def with_meaning(graph: Graph, sets: Sequence[Path]) -> None:
    embedder = embed.E5()
    start = time.monotonic()
    seconds = cpu_s(lambda: embed.build_index(graph, embedder))
    size = embed.index_path(graph).stat().st_size / 1e6
    say("dense index", f"{seconds:.0f} s of CPU, {time.monotonic() - start:.0f} s, {size:.1f} MB", target="≤ 480 s")
    search = Search(graph, embed.open_dense(graph, embedder))
    texts = [row["question"] for row in rows(QUESTIONS)]
    say("embedding alone", spread(each(lambda text: embedder.vectors([text]), texts)))
    say("search with meaning", spread(each(search.search, texts)), target="p50 ≤ 20 ms, p95 ≤ 35 ms")
    say_hits(search, graph, sets=sets, how="words and meaning")
    say("resident", f"{resident_mb():.0f} MB with graph, search and embedder")


def gate(graph: Graph) -> None:
    nodes = [*graph.nodes(Kind.WEAKNESS), *graph.nodes(Kind.TECHNIQUE)]
    right = "\n".join(f"{node.id}: {node.name}" for node in nodes)
    wrong = "\n".join(f"{node.id}: {other.name}" for node, other in zip(nodes, nodes[1:] + nodes[:1], strict=True))
    citations.examine("CWE-89 SQL", graph)
    for name, text in (("right", right), ("wrong", wrong)):
        (seconds,) = each(lambda text: citations.examine(text, graph), [text])
        say(f"citations, {name}", f"{len(nodes) / seconds:.0f} a second", target="≥ 5000")


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def say_hits(search: Search, graph: Graph, *, sets: Sequence[Path], how: str) -> None:
    for path in sets:
        asked: Counter[str] = Counter()
        found: Counter[str] = Counter()
        for row in rows(path):
            hit = {passage.node for passage in search.search(row["question"], 3)} & current(row["expected"], graph)
            for group in (row["language"], row["kind"]):
                asked[group] += 1
                found[group] += bool(hit)
        shares = ", ".join(f"{group} {found[group]}/{asked[group]}" for group in sorted(asked, key=len))
        say(f"hit@3 {path.stem}, {how}", shares, target="0.95 in zh and en")
    if VULNERABILITIES.is_file():
        with gzip.open(VULNERABILITIES, "rt", encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        near = ({passage.node for passage in search.search(record["description"], 3)} for record in records)
        hits = sum(bool(nodes & set(record["cwe"])) for nodes, record in zip(near, records, strict=True))
        say(f"hit@3 CVE texts, {how}", f"{hits}/{len(records)} find the very CWE that CISA gave")


def current(expected: str, graph: Graph) -> set[str]:
    """Expected ids; one that the newest version dropped stands for its heir."""
    found = set()
    for id_ in expected.split(","):
        node = graph.node(id_)
        left = node is not None and node.state is not State.LIVE
        found |= {edge.end for edge in graph.around(id_, "replaced-by") if edge.start == id_} if left else {id_}
    return found


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
    print(f"{name:<36} {figure}" + (f"   (target {target})" if target else ""), flush=True)


if __name__ == "__main__":
    main()
