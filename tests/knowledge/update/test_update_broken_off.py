from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from casemate.errors import KnowledgeError
from casemate.knowledge import update as updates
from casemate.knowledge.feeds import importers
from knowledge.update.desk import ENTRY, WITHDRAWN, Desk, Run, kev, node_of


def test_a_second_update_at_the_same_time_is_refused(desk: Desk, run: Run) -> None:
    with updates.opened(desk.config.sources) as work:
        staged = work.bring(Path(desk.put("kev.json", kev(ENTRY))), place="kev.json")
        with pytest.raises(KnowledgeError, match="another update is under way"):
            run("update", "--from", desk.put("other.json", kev(WITHDRAWN)))
        assert staged.path.is_file()
        work.carry_out(desk.config.artifacts, desk.config.graph)
    assert node_of(desk, "CVE-2041-0001")


@pytest.fixture
def killed(stocked: Desk) -> Iterator[Callable[[str, Callable[[], bool]], None]]:
    """Starts an update in a process of its own, and kills it as soon as a condition holds."""
    program = "import sys; from casemate.cli import updating; updating.update([], sys.argv[1:], check=False)"
    started: list[subprocess.Popen[bytes]] = []

    def kill(place: str, ripe: Callable[[], bool]) -> None:
        process = subprocess.Popen([sys.executable, "-c", program, place], stderr=subprocess.DEVNULL)
        started.append(process)
        until = time.monotonic() + 60
        while not ripe():
            assert process.poll() is None, "it ended before it could be killed"
            assert time.monotonic() < until
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.wait()

    yield kill
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()


@pytest.mark.parametrize("form", ["downloads", "kev.*", "graph.sqlite.*.part"])
def test_a_killed_update_leaves_no_half_file_and_the_next_one_clears_up(
    stocked: Desk, run: Run, killed: Callable[[str, Callable[[], bool]], None], form: str
) -> None:
    desk = stocked
    before = desk.everything()
    aside = desk.config.sources / ".update"
    place = desk.put("second.json", kev(WITHDRAWN, version="2041.05.05"))
    killed(place, lambda: any(aside.glob(form)))
    kept, graph, names = desk.everything()
    assert {name: content for name, content in kept.items() if not name.startswith(".update")} == before[0]
    assert [source.path.name for source in importers.kept(desk.config.sources)] == ["kev.first.json"]
    assert (graph, names) == before[1:]
    assert run("update", "--from", place)[0] == 0
    assert list(desk.kept()) == ["kev.second.json"]


@pytest.mark.parametrize("placed", [False, True])
def test_an_update_killed_between_two_names_is_mended_by_the_next(desk: Desk, placed: object) -> None:
    desk.config.sources.mkdir()
    (desk.config.sources / ".was.kev.first.json").write_text(kev(ENTRY))
    if placed:
        (desk.config.sources / "kev.second.json").write_text(kev(WITHDRAWN))
    with updates.opened(desk.config.sources):
        pass
    assert list(desk.kept()) == ["kev.second.json" if placed else "kev.first.json"]
