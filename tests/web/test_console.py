from __future__ import annotations

import asyncio
import re
import threading
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from yarl import URL

from casemate.engine.interface import Starting
from casemate.finding import AuditResult, Confidence, Finding, Ledger, Location, Severity, Unread
from casemate.report import document, html
from casemate.report.findings import to_json
from casemate.web import console
from casemate.web.services import AuditReport
from casemate.web.texts import TEXTS, language
from fakes.platform import MODEL, platform

EVIL = "<script>alert(1)</script>\x1b[31m"
FINDING = Finding(
    rule="python.sql",
    cwe="CWE-89",
    name="SQL Injection",
    severity=Severity.CRITICAL,
    confidence=Confidence.HIGH,
    location=Location("shop/orders.py", 41, 5, 41, 60),
    evidence="cursor.execute(...)",
    fingerprint="f" * 32,
    message="A request argument reaches a query.",
)
STATIC = Path(console.__file__).parent / "static"


class Page(HTMLParser):
    """What of a page matters here: its tags with their attributes, and its text."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def report(result: AuditResult) -> AuditReport:
    page = html.render(document.Document(title="Audit of examples/shop"))
    return AuditReport(title="examples/shop", document=to_json(result), html=page)


async def get(address: str, path: str = "/", **headers: str) -> tuple[int, str, Any]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with aiohttp.ClientSession() as session, session.get(address + path, headers=named) as response:
        return response.status, await response.text(), response.headers


async def start_page(result: AuditResult | None = None, path: str = "/?lang=en", **changes: Any) -> Page:
    latest = None if result is None else report(result)
    async with platform(report=lambda: latest, **changes) as address:
        status, text, _ = await get(address, path)
    assert status == 200
    return Page(text)


async def test_the_page_shows_the_latest_audit_with_each_finding_and_a_way_to_the_full_report() -> None:
    page = await start_page(AuditResult(findings=(FINDING,), ledger=Ledger(analysed=7)))
    for part in ("examples/shop", "CWE-89", "SQL Injection", "shop/orders.py:41", "critical", "7 files analysed"):
        assert part in page.text
    assert ("a", "/report") in [(tag, attributes.get("href")) for tag, attributes in page.tags]


async def test_the_full_report_is_served_under_its_own_policy() -> None:
    async with platform(report=lambda: report(AuditResult(findings=(FINDING,)))) as address:
        status, text, headers = await get(address, "/report")
    assert (status, headers["Content-Security-Policy"]) == (200, html.policy())
    assert "Audit of examples/shop" in text


async def test_before_the_first_audit_the_page_says_how_to_make_one() -> None:
    page = await start_page()
    assert "casemate audit PATH" in page.text
    async with platform() as address:
        assert (await get(address, "/report"))[0] == 404


SKIPPED = (Unread("a.js", "not Python"), Unread("b.js", "not Python"))
FAILED = (Unread("big.py", "took more than 10 s"),)


@pytest.mark.parametrize(
    ("ledger", "kind", "said"),
    [
        (Ledger(), "note", "No file was analysed"),
        (Ledger(skipped=SKIPPED), "note", "No file was analysed, so this audit says nothing about the code. Skipped"),
        (Ledger(failed=FAILED), "note", TEXTS["en"]["partial"]),
        (Ledger(analysed=3, failed=FAILED), "note", TEXTS["en"]["partial"]),
        (Ledger(analysed=3, skipped=SKIPPED, failed=FAILED), "note", "big.py took more than 10 s"),
        (Ledger(analysed=1), "clean", "No findings in the one file analysed."),
        (Ledger(analysed=3), "clean", "No findings in the 3 files analysed.\n"),
        (Ledger(analysed=3, skipped=SKIPPED), "clean", "the 3 files analysed. Skipped, and so not judged: 2."),
    ],
)
async def test_an_audit_is_called_clean_only_where_something_was_analysed_and_nothing_failed(
    ledger: Ledger, kind: str, said: str
) -> None:
    page = await start_page(AuditResult(ledger=ledger))
    boxes = [attributes["class"] for tag, attributes in page.tags if attributes.get("class") in {"clean", "note"}]
    assert boxes[1:] == [kind]  # the first is for browsers without JavaScript
    assert said in page.text
    assert ("No findings" in page.text) == (kind == "clean") == ledger.complete


@pytest.mark.parametrize("ledger", [Ledger(skipped=SKIPPED), Ledger(analysed=3, skipped=SKIPPED)])
async def test_what_was_skipped_is_counted_in_chinese_too(ledger: Ledger) -> None:
    page = await start_page(AuditResult(ledger=ledger), path="/?lang=zh")
    assert "另有 2 个文件被跳过" in page.text
    assert ("3 个文件中没有发现" in page.text) == ledger.complete


async def test_text_of_the_audited_tree_stays_text() -> None:
    evil = replace(FINDING, name=EVIL, message=EVIL, location=Location(EVIL, 1, 1, 1, 2))
    result = AuditResult(findings=(evil,), ledger=Ledger(failed=(Unread(EVIL, EVIL),)))
    page = await start_page(result, note=EVIL, model_name=f'"{EVIL}')
    assert "<script>alert(1)</script>" in page.text
    assert "\x1b" not in page.text
    assert [attributes.get("src") for tag, attributes in page.tags if tag == "script"] == [
        "/static/answer.js",
        "/static/console.js",
    ]


async def test_the_page_keeps_its_own_policy() -> None:
    """No inline script, style or handler, and nothing from elsewhere."""
    page = await start_page(AuditResult(findings=(FINDING,)))
    for tag, attributes in page.tags:
        assert tag != "style"
        assert tag != "script" or attributes["src"]
        for name, value in attributes.items():
            assert not name.startswith("on")
            assert name != "style"
            if name in {"src", "href", "action"}:
                assert value
                assert re.match(r"[/#](?!/)", value), value


@pytest.mark.parametrize("name", ["answer.js", "console.js", "console.css", "icon.svg"])
async def test_the_files_of_the_page_are_served_and_use_no_other_host(name: str) -> None:
    async with platform() as address:
        status, text, _ = await get(address, f"/static/{name}")
    assert (status, text) == (200, (STATIC / name).read_text())
    assert not re.search(r"""https?:|["'(]//""", text.replace("http://www.w3.org/2000/svg", ""))
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)


@pytest.mark.parametrize(
    "path", ["/static/../app.py", "/static/%2e%2e/app.py", "/static/", "/static/none.js", "/nowhere"]
)
async def test_nothing_else_is_served(path: str) -> None:
    async with platform() as address:
        target = URL(address + path, encoded=True)
        async with aiohttp.ClientSession() as session, session.get(target) as response:
            assert response.status == 404


async def test_every_word_of_the_page_stands_in_both_languages() -> None:
    assert TEXTS["en"].keys() == TEXTS["zh"].keys()
    assert all(text.strip() for texts in TEXTS.values() for text in texts.values())
    english, chinese = await start_page(), await start_page(path="/?lang=zh")
    assert TEXTS["en"]["tagline"] in english.text
    assert TEXTS["zh"]["tagline"] in chinese.text
    assert ("html", {"lang": "zh"}) in chinese.tags


@pytest.mark.parametrize(
    ("asked", "accepted", "chosen"),
    [
        ("", "", "en"),
        ("", "zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("", "en-GB,en;q=0.9,zh;q=0.8", "en"),
        ("", "en;q=0.5, zh-Hans;q=0.9", "zh"),
        ("", "fr, zh;q=0.1", "zh"),
        ("", "fr", "en"),
        ("", "zh;q=banana", "zh"),
        ("en", "zh", "en"),
        ("xx", "zh", "zh"),
    ],
)
def test_the_language_is_the_one_asked_for_else_the_browsers(asked: str, accepted: str, chosen: str) -> None:
    assert language(asked, accepted) == chosen


async def test_the_state_of_the_engine_and_the_note_are_shown() -> None:
    page = await start_page(ready=lambda: Starting("load", 0.5), note="stepped down to the small model")
    assert f"{MODEL} · starting" in page.text
    assert "stepped down to the small model" in page.text


@pytest.mark.parametrize("path", ["/?lang=en", "/?lang=zh"])
async def test_only_an_engine_on_this_machine_keeps_the_promise_that_nothing_leaves_it(path: str) -> None:
    chosen = TEXTS[path[-2:]]
    here = await start_page(path=path, note="small model")
    away = await start_page(path=path, note="big (at http://10.0.0.5:8000)\x1b", local=False)
    assert (chosen["tagline"] in here.text, chosen["tagline_foreign"] in here.text) == (True, False)
    assert chosen["tagline"] not in away.text
    assert f"{chosen['tagline_foreign']} big (at http://10.0.0.5:8000)␛" in away.text


@pytest.mark.parametrize("path", ["/", "/report"])
async def test_an_audit_that_takes_long_to_read_holds_nobody_up(path: str) -> None:
    asked, may_go_on = threading.Event(), threading.Event()

    def slowly() -> None:
        asked.set()
        assert may_go_on.wait(10)

    async with platform(report=slowly) as address:
        reading = asyncio.create_task(get(address, path))
        assert await asyncio.to_thread(asked.wait, 10)
        assert (await get(address, "/healthz"))[0] == 200
        assert not reading.done()
        may_go_on.set()
        assert (await reading)[0] == (200 if path == "/" else 404)
