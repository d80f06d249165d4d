"""The HTML report as people open it: offline, in a real browser where the machine has one."""

from __future__ import annotations

import http.server
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from casemate.agents import dossier
from casemate.agents.phrases import Language
from casemate.finding import AuditResult, Patch
from casemate.report import html
from fakes.browser import CHROMIUM, Page, browser
from report.sample_audit import PARTIAL

_LONG = replace(
    PARTIAL.findings[0],
    evidence="x = " + "very_long_name + " * 40 + "1",
    patch=Patch(12, 12, "a = " + "b" * 300, "a = c"),
    scope="A" * 200,
    fingerprint="d" * 32,
)
_AUDIT = AuditResult((*PARTIAL.findings, _LONG), PARTIAL.ledger, PARTIAL.model)


@pytest.fixture
async def tab(tmp_path: Path, optional: Callable[[str, object], None]) -> AsyncIterator[Page]:
    optional("the report in a browser (no chromium on this machine)", CHROMIUM)
    async with browser(tmp_path / "profile") as page:
        yield page


@contextmanager
def _served(language: Language) -> Iterator[str]:
    page = html.render(dossier.document(_AUDIT, language=language, root="examples/shop")).encode()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(page if self.path == "/" else b"")

        def log_message(self, *_args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_no_width_scrolls_sideways_and_the_policy_refuses_nothing_of_ours(language: Language, tab: Page) -> None:
    with _served(language) as address:
        for width in (1280, 375):
            await tab.open(address, width=width, height=900)
            assert await tab.run("document.documentElement.scrollWidth") == width
    assert [told for told in tab.told if "favicon" not in told] == []


async def test_a_severity_is_shown_alone_without_any_script(tab: Page) -> None:
    with _served("en") as address:
        await tab.open(address)
        shown = "[...document.querySelectorAll('#findings article')].filter(a => a.offsetHeight).map(a => a.className)"
        assert await tab.run(shown) == ["high", "medium", "low", "high"]
        await tab.run("document.querySelector('label[for=only-medium]').click()")
        assert await tab.run(shown) == ["medium"]
        await tab.run("document.querySelector('label[for=only-all]').click()")
        assert len(await tab.run(shown)) == 4
        assert await tab.run("document.scripts.length") == 0


async def test_every_link_within_the_page_leads_somewhere(tab: Page) -> None:
    with _served("en") as address:
        await tab.open(address)
        links = "[...document.querySelectorAll('a[href^=\"#\"]')].map(link => link.hash)"
        assert await tab.run(f"{links}.filter(hash => !document.querySelector(hash))") == []
        assert await tab.run("document.querySelectorAll('a[href^=\"#finding-\"]').length") > 0
