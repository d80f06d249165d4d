from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from artifacts.origin import Origin, closed_port
from casemate.cli import updating
from casemate.errors import ArtifactError, CasemateError, KnowledgeError, UsageError
from casemate.knowledge import update as updates
from casemate.knowledge.feeds import importers
from knowledge.update.desk import ENTRY, GDPR, SMALL, Desk, Run, cve, kev

Refused = tuple[Callable[[Desk], list[str]], type[CasemateError], str]

REFUSALS: dict[str, Refused] = {
    "a cut file": (lambda d: ["--from", d.put("k.json", kev(ENTRY)[:-9])], KnowledgeError, "k.json:1"),
    "a damaged entry": (
        lambda d: ["--from", d.put("k.json", kev(ENTRY, ENTRY | {"vulnerabilityName": 5}))],
        KnowledgeError,
        "k.json, CVE-2041-0001",
    ),
    "a damaged file in a folder": (
        lambda d: ["--from", str(Path(d.put("t/CVE-2041-0007.json", cve(7)[:-1])).parent)],
        KnowledgeError,
        "t/CVE-2041-0007.json",
    ),
    "a damaged second": (
        lambda d: ["--from", d.put("k.json", kev(ENTRY)), "--from", d.put("g.tsv", GDPR + "Art. 2\n")],
        KnowledgeError,
        "g.tsv:3",
    ),
    "a foreign file": (lambda d: ["--from", d.put("page.html", "<html>")], KnowledgeError, "page.html"),
    "nothing": (lambda d: ["--from", str(d.folder / "absent")], KnowledgeError, "absent"),
    "another source than was named": (
        lambda d: ["cwe", "--from", d.put("k.json", kev(ENTRY))],
        KnowledgeError,
        "k.json",
    ),
    "one source twice": (
        lambda d: ["--from", d.put("k.json", kev(ENTRY)), "--from", d.put("l.json", kev(ENTRY))],
        KnowledgeError,
        "l.json",
    ),
    "what only ships as files of an artefact": (
        lambda d: ["--from", str(SMALL / "attack-patterns.json")],
        KnowledgeError,
        "attack-patterns.json",
    ),
    "an unknown name": (lambda _: ["wisdom"], UsageError, ""),
    "a name without an address": (lambda _: ["gdpr"], UsageError, ""),
    "another scheme": (lambda _: ["--from", "ftp://127.0.0.1/k.json"], UsageError, "ftp://127.0.0.1/k.json"),
    "a file's address": (lambda d: ["--from", f"file://{d.put('k.json', kev(ENTRY))}"], UsageError, "file://"),
    "a password in the address": (lambda _: ["--from", "http://a:b@127.0.0.1/k"], UsageError, "http://127.0.0.1/k"),
    "no host": (lambda _: ["--from", "http:///k"], UsageError, ""),
    "a strange port": (lambda _: ["--from", "http://127.0.0.1:x/k"], UsageError, ""),
    "an address that hands out credentials": (
        lambda _: ["--from", "http://169.254.169.254/latest"],
        UsageError,
        "http://169.254.169.254/latest",
    ),
    "a closed port": (lambda _: ["--from", f"{closed_port()}/k.json"], ArtifactError, "/k.json"),
}


@pytest.mark.parametrize(("arguments", "kind", "where"), REFUSALS.values(), ids=REFUSALS)
def test_what_is_refused_is_named_and_leaves_everything_as_it_was(
    stocked: Desk, run: Run, arguments: Callable[[Desk], list[str]], kind: type[CasemateError], where: str
) -> None:
    before = stocked.everything()
    with pytest.raises(kind) as caught:
        run("update", *arguments(stocked))
    assert where in caught.value.where
    assert ".update" not in str(caught.value)
    assert stocked.everything() == before


@pytest.mark.parametrize("content", [b"", b"<html>Not here</html>", kev(ENTRY).encode()[:-7], b"\x1f\x8b\x08junk"])
def test_what_an_address_sends_is_refused_by_the_address(desk: Desk, run: Run, content: bytes) -> None:
    before = desk.everything()
    with Origin({"/kev.json": content}).serving() as origin:
        with pytest.raises(KnowledgeError) as caught:
            run("update", "--from", f"{origin.url}/kev.json")
        assert caught.value.where.startswith(f"{origin.url}/kev.json")
    assert desk.everything()[:2] == before[:2]


def test_offline_nothing_is_fetched_but_a_file_is_taken(desk: Desk, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CASEMATE_OFFLINE", "true")
    for arguments in ([], ["kev"], ["--from", "http://127.0.0.1/kev.json"]):
        with pytest.raises(ArtifactError, match="switched off"):
            run("update", *arguments)
    assert run("update", "kev", "--from", desk.put("kev.json", kev(ENTRY)))[0] == 0


@pytest.mark.parametrize("names", [[], ["kev"]])
def test_where_no_official_address_answers_one_is_named(
    stocked: Desk, run: Run, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", closed_port())
    before = stocked.everything()
    with pytest.raises(ArtifactError, match="could not be reached") as caught:
        run("update", *names)
    assert caught.value.where == importers.IMPORTERS[names[0] if names else "cwe"].address
    assert "--from" in caught.value.remedy
    assert stocked.everything() == before


def test_an_official_address_that_does_not_answer_is_left_out_and_the_others_count(desk: Desk) -> None:
    with Origin({"/kev.json": kev(ENTRY).encode()}).serving() as origin, updates.opened(desk.config.sources) as work:
        addresses = {"cwe": f"{origin.url}/gone.zip", "kev": f"{origin.url}/kev.json", "gdpr": ""}
        brought, missed = updating._official(work, addresses, observer=None)
    assert [source.importer for source, _ in brought] == ["kev"]
    assert [(name, error.what) for name, error in missed] == [("cwe", "answered 404 Not Found")]


def test_an_official_address_that_gives_another_source_is_refused(desk: Desk) -> None:
    with (
        Origin({"/cwe.zip": kev(ENTRY).encode()}).serving() as origin,
        updates.opened(desk.config.sources) as work,
        pytest.raises(KnowledgeError, match="is CISA KEV"),
    ):
        updating._official(work, {"cwe": f"{origin.url}/cwe.zip"}, observer=None)


def test_a_folder_that_cannot_be_written_is_told_in_one_line(desk: Desk, run: Run) -> None:
    desk.config.sources.write_text("a file is in the way")
    with pytest.raises(KnowledgeError, match="cannot be read or kept"):
        run("update", "--from", desk.put("kev.json", kev(ENTRY)))
