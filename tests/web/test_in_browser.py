"""The page as a person meets it, in a real browser where the machine has one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path

import pytest

from casemate.web.atlas.lending import Lending
from fakes import atlas
from fakes.browser import CHROMIUM, Page, browser
from fakes.platform import platform, services
from fakes.upstream import upstream

ANSWER = """It is **SQL injection** (CWE-89), not CWE-99999:

```python
cursor.execute("SELECT 1 WHERE id = ?", (user_id,))
```
<img src=x onerror="document.title='owned'"> ![pixel]({url}/p.png) [click]({url})
<script>document.title='owned'</script>"""


@pytest.fixture
async def tab(tmp_path: Path, optional: Callable[[str, object], None]) -> AsyncIterator[Page]:
    optional("the page in a browser (no chromium on this machine)", CHROMIUM)
    async with browser(tmp_path / "profile") as page:
        yield page


async def test_a_question_is_answered_with_checked_citations(tab: Page) -> None:
    async with platform(services([ANSWER])) as address:
        await tab.open(f"{address}/?lang=en")
        await tab.ask("What is wrong?")
        said = await tab.run("document.getElementById('talk').innerText")
        assert await tab.run("document.querySelector('#talk pre code').textContent") == (
            'cursor.execute("SELECT 1 WHERE id = ?", (user_id,))'
        )
    assert "What is wrong?" in said
    assert "CWE-89 SQL Injection CWE 4.14 checked" in said
    assert "CWE-99999 CWE 4.14 does not check out (H2)" in said
    assert "CWE-564 SQL Injection: Hibernate CWE 4.14" in said
    assert tab.told == []


async def test_markup_in_an_answer_stays_text_and_reaches_no_other_host(tab: Page) -> None:
    async with upstream() as elsewhere, platform(services([ANSWER.replace("{url}", elsewhere.url)])) as address:
        await tab.open(f"{address}/?lang=en")
        await tab.ask("What is wrong?")
        assert await tab.run("document.querySelectorAll('#talk :is(img, a, script, iframe)').length") == 0
        assert await tab.run("document.title") == "Casemate"
        assert f"![pixel]({elsewhere.url}/p.png)" in await tab.run("document.getElementById('talk').innerText")
        assert elsewhere.connections == 0


async def test_the_narrow_page_does_not_scroll_sideways(tab: Page) -> None:
    async with platform(services([ANSWER])) as address:
        await tab.open(f"{address}/?lang=zh", width=360, height=800)
        await tab.ask("x" * 300)
        assert await tab.run("document.documentElement.scrollWidth") == 360


async def test_a_conversation_goes_on_and_starts_anew(tab: Page) -> None:
    async with platform(services(["First answer.", "Second answer."])) as address:
        await tab.open(f"{address}/?lang=en")
        await tab.ask("one")
        await tab.ask("two")
        assert await tab.run("document.querySelectorAll('#talk article').length") == 4
        await tab.run("document.getElementById('clear').click()")
        assert await tab.run("document.querySelectorAll('#talk article').length") == 0
        assert await tab.run("document.activeElement.id") == "question"


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_the_graph_is_read_by_keyboard_from_the_search_to_a_neighbour(
    language: str, tab: Page, tmp_path: Path
) -> None:
    with closing(Lending(atlas.write(tmp_path / "graph.sqlite"))) as lending:
        async with platform(graph=lending.lent) as address:
            await tab.open(f"{address}/graph?lang={language}")
            await tab.run("document.getElementById('q').focus()")
            await tab.call("Input.insertText", text="cwe 89")
            await tab.press("Enter", 13, text="\r")
            await tab.until("location.pathname === '/graph/node' && document.readyState === 'complete'")
            assert await tab.run("new URLSearchParams(location.search).get('id')") == "CWE-89"
            drawn = await tab.run("document.querySelectorAll('svg .spot').length")
            assert drawn == await tab.run("document.querySelectorAll('svg path').length") - 4  # those of the legend
            await tab.run("document.querySelector('svg .spot[href*=T1190]').focus()")
            await tab.press("Enter", 13, text="\r")
            await tab.until("document.title.startsWith('T1190') && document.readyState === 'complete'")
    assert tab.told == []


async def test_no_label_of_the_picture_leaves_its_box_and_the_narrow_page_does_not_scroll_sideways(
    tab: Page, tmp_path: Path
) -> None:
    with closing(Lending(atlas.write(tmp_path / "graph.sqlite"))) as lending:
        async with platform(graph=lending.lent) as address:
            await tab.open(f"{address}/graph/node?id=CWE-89&lang=en")
            assert await tab.run(_OVERFLOWING) == []
            for path in ("/graph", "/graph/node?id=CWE-89", "/graph/path?from=CWE-89&to=T1190"):
                await tab.open(address + path, width=360, height=800)
                assert await tab.run("document.documentElement.scrollWidth") == 360


_OVERFLOWING = """[...document.querySelectorAll('svg .spot, svg .centre')].filter(spot => {
    const [box, text] = ['rect', 'text'].map(name => spot.querySelector(name).getBoundingClientRect());
    return text.left < box.left || text.right > box.right;
}).map(spot => spot.textContent)"""
