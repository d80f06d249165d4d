"""The graph's pages where something is missing, foreign, hostile or changing."""

from __future__ import annotations

import asyncio
import re
import threading
from contextlib import AbstractContextManager, closing
from pathlib import Path

import pytest

from casemate.errors import KnowledgeError
from casemate.knowledge.node import Kind, Node
from casemate.web.atlas.answers import MAX_ID, MAX_QUESTION
from casemate.web.atlas.lending import Lending, Reading, no_graph
from fakes import atlas
from fakes.pages import Page, get, page, twin
from fakes.platform import platform


@pytest.mark.parametrize(
    ("path", "parameters", "code"),
    [
        ("/graph", {"q": "x" * (MAX_QUESTION + 1)}, "too_long"),
        ("/graph/node", {"id": "x" * (MAX_ID + 1)}, "too_long"),
        ("/graph/node", {}, "empty"),
        ("/graph/node", {"id": " "}, "empty"),
        ("/graph/path", {"from": "CWE-89"}, "empty"),
        ("/graph/path", {"from": "CWE-89", "to": "x" * (MAX_ID + 1)}, "too_long"),
    ],
)
async def test_what_is_missing_or_too_long_is_refused(
    path: str, parameters: dict[str, str], code: str, address: str
) -> None:
    assert (await page(address, path, **parameters)).status == 400
    status, value = await twin(address, f"{path}.json", **parameters)
    assert (status, value["error"]["code"]) == (400, code)


PATHS: tuple[tuple[str, dict[str, str]], ...] = (
    ("/graph", {}),
    ("/graph", {"q": f"{atlas.EVIL} again"}),
    ("/graph", {"q": "CWE-89 and CAPEC-66"}),
    ("/graph/node", {"id": "CWE-89"}),
    ("/graph/node", {"id": "CAPEC-66"}),
    ("/graph/node", {"id": atlas.EVIL}),
    ("/graph/path", {"from": "CWE-89", "to": "CAPEC-66"}),
    ("/graph/path", {"from": "GDPR Art. 32(1)(b)", "to": "CAPEC-66"}),
    ("/graph/path", {"from": atlas.EVIL, "to": "CWE-89"}),
)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(("path", "parameters"), PATHS)
async def test_text_of_the_graph_and_of_the_address_stays_text(
    path: str, parameters: dict[str, str], language: str, address: str
) -> None:
    shown = await page(address, path, lang=language, **parameters)
    everything = shown.raw + "".join(value or "" for _, given in shown.tags for value in given.values())
    assert "\x1b" not in everything
    assert "\u202e" not in everything
    assert shown.count("script") == 0
    if parameters:
        assert ("<script>alert(1)</script>␛[31m⟨U+202E⟩" in everything) or "CWE-89 and" in everything


@pytest.mark.parametrize(("path", "parameters"), PATHS)
async def test_a_page_holds_no_script_no_style_and_nothing_from_elsewhere(
    path: str, parameters: dict[str, str], address: str
) -> None:
    shown = await page(address, path, **parameters)
    policy = shown.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src" not in policy
    assert "unsafe" not in policy
    for tag, given in shown.tags:
        assert tag not in {"script", "style", "iframe", "image", "use", "foreignobject"}
        assert not [name for name in given if name == "style" or name.startswith("on")]
        for name in {"src", "href", "action", "xlink:href"} & given.keys():
            value = given[name] or ""
            assert re.match(r"[/#](?!/)", value) or (tag == "a" and given.get("rel") == "noreferrer"), value


@pytest.mark.parametrize("path", ["/graph", "/graph/node?id=CWE-89", "/graph/path?from=CWE-89&to=T1190"])
async def test_a_missing_graph_is_told_with_the_remedy(path: str, tmp_path: Path) -> None:
    with closing(Lending(tmp_path / "graph.sqlite")) as nothing:
        for lender in (no_graph, nothing.lent):
            async with platform(graph=lender) as address:
                shown = Page(await get(address, path))
                assert (shown.status, "casemate kb build" in shown.text) == (503, True)
                status, value = await twin(address, path.replace("?", ".json?") if "?" in path else f"{path}.json")
                assert (status, value["error"]["code"]) == (503, "no_graph")
                assert "casemate kb build" in value["error"]["message"]


async def test_a_file_that_is_no_graph_is_told_and_the_next_good_one_is_read(tmp_path: Path) -> None:
    path = tmp_path / "graph.sqlite"
    path.write_bytes(b"no graph at all" * 99)
    with closing(Lending(path)) as lending:
        async with platform(graph=lending.lent) as address:
            assert (await page(address, "/graph")).status == 503
            atlas.write(path)
            assert (await page(address, "/graph")).status == 200


def test_after_a_build_the_new_graph_is_lent_and_the_old_one_closes_after_its_last_loan(tmp_path: Path) -> None:
    path = atlas.write(tmp_path / "graph.sqlite")
    with closing(Lending(path)) as lending:
        with lending.lent() as old:
            with lending.lent() as again:
                assert again.graph is old.graph
            atlas.write(path, [Node("CWE-1", Kind.WEAKNESS, "Another One", "CWE", "9.2")])
            with lending.lent() as new:
                assert (new.graph.node("CWE-1") is None, new.graph.node("CWE-89")) == (False, None)
            assert old.graph.node("T1190") is not None
        with pytest.raises(KnowledgeError):
            old.graph.rows("SELECT 1")
        path.unlink()
        with pytest.raises(KnowledgeError, match="there is no graph"), lending.lent():
            pass


async def test_a_graph_that_takes_long_to_read_holds_nobody_up(lending: Lending) -> None:
    asked, may_go_on = threading.Event(), threading.Event()

    def slowly() -> AbstractContextManager[Reading]:
        asked.set()
        assert may_go_on.wait(10)
        return lending.lent()

    async with platform(graph=slowly) as address:
        reading = asyncio.create_task(get(address, "/graph"))
        assert await asyncio.to_thread(asked.wait, 10)
        assert (await get(address, "/healthz"))[0] == 200
        assert not reading.done()
        may_go_on.set()
        assert (await reading)[0] == 200
