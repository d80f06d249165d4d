"""What holds for every renderer: the snapshots show how it looks, these tests say what may never happen."""

import re
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from casemate.agents import dossier
from casemate.agents.phrases import Language
from casemate.report import html, markdown, text
from casemate.report.columns import cells, wrapped
from casemate.report.document import (
    Change,
    Code,
    Document,
    Figure,
    Figures,
    Fold,
    Links,
    Mark,
    Paragraph,
    Quote,
    Section,
    Step,
    Steps,
    Table,
    Verdict,
)
from report.sample_audit import CLEAN, PARTIAL

RENDERERS: dict[str, Callable[[Document], str]] = {
    "text": lambda document: text.render(document, 80),
    "markdown": markdown.render,
    "html": html.render,
}
FOREIGN = (
    "\x1b]0;t\x07 \u202e <img src=x onerror=alert(1)> ![i](http://evil.example/i.png) [l](javascript:a) | `q` & \"'"
)


def _everywhere(foreign: str) -> Document:
    """A document with the same foreign text in every field that takes one."""
    blocks = (
        Paragraph(foreign),
        Verdict("bad", foreign),
        Figures((Figure(foreign, foreign),)),
        Table((foreign, "b"), ((foreign, "c"),)),
        Code(foreign, foreign, foreign),
        Code(foreign, foreign, foreign, 7, Mark(7, 7, 3, 9)),
        Change(foreign, foreign + "x", foreign),
        Steps((Step(foreign, foreign, foreign, foreign), Step("", foreign)), foreign),
        Fold(foreign, (Paragraph(foreign), Code(foreign))),
        Quote(foreign, foreign),
        Links(foreign, (foreign,)),
    )
    inner = Section(foreign, blocks, anchor=foreign, kind=foreign)
    outer = Section(foreign, blocks, (inner,), foreign, filters=(("", foreign), (foreign, foreign)))
    return Document(foreign, (outer,), blocks, foreign, foreign)


@pytest.mark.parametrize("renderer", RENDERERS)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_an_audit_reads_like_this(renderer: str, language: Language, snapshot: SnapshotAssertion) -> None:
    assert RENDERERS[renderer](dossier.document(PARTIAL, language=language, root="examples/shop")) == snapshot


@pytest.mark.parametrize("renderer", RENDERERS)
def test_no_renderer_lets_a_control_or_invisible_character_through(renderer: str) -> None:
    page = RENDERERS[renderer](_everywhere(FOREIGN))
    assert "␛" in page
    assert not [c for c in page if unicodedata.category(c) in {"Cc", "Cf", "Cs"} and c != "\n"]


@given(st.text(st.characters(), max_size=40))
def test_any_text_can_be_rendered_by_each(foreign: str) -> None:
    for render in RENDERERS.values():
        render(_everywhere(foreign)).encode()


def test_a_page_holds_no_markup_of_a_foreign_text() -> None:
    page = html.render(_everywhere(FOREIGN))
    assert "<img" not in page
    assert "<script" not in page
    assert 'href="javascript' not in page
    assert "onerror=alert(1)&gt;" in page


def test_a_page_asks_for_nothing_and_runs_nothing() -> None:
    page = html.render(dossier.document(PARTIAL, language="en", root="."))
    assert not re.findall(r"<(?:script|img|link|iframe|form|object)|\bsrc=|\son\w+=|url\(|@import", page)
    assert html.policy().startswith("default-src 'none'; style-src 'sha256-")
    assert page.count("<style>") == 1
    assert " style=" not in page


def test_only_web_addresses_become_links() -> None:
    document = Document(
        "t", lead=(Links("r", ("https://a.example/x", "javascript:alert(1)", "https://a.example/><x>")),)
    )
    assert re.findall(r'href="([^"]*)"', html.render(document)) == ["https://a.example/x"]
    assert re.findall(r"^- <([^>]*)>", markdown.render(document), re.MULTILINE) == ["https://a.example/x"]


def test_foreign_text_in_markdown_opens_no_image_link_heading_list_or_mention() -> None:
    page = markdown.render(
        Document("t", lead=(Paragraph("![i](http://e.example)\n# h\n- l\n1. n\n> q\n@who\n=====\nwww.e.example"),))
    )
    assert r"\!\[i\](http\://e.example)" in page
    assert "\n\\# h\n\\- l\n1\\. n\n\\> q\n&#64;who\n\\=====\nwww\\.e.example" in page


def test_code_in_markdown_cannot_close_its_fence() -> None:
    page = markdown.render(Document("t", lead=(Code("````\n# free\n```"),)))
    assert page.count("`````") == 2


def test_a_cell_with_a_pipe_or_a_line_end_stays_one_cell() -> None:
    page = markdown.render(Document("t", lead=(Table(("a", "b"), (("x|y\nz `p|q`", "w"),)),)))
    assert "| x\\|y z `p\\|q` | w |" in page


def test_text_keeps_to_the_width_in_both_languages() -> None:
    prose = "这是一个很长的句子，用来检查换行是否正确。" * 4 + "and a long English sentence follows it here " * 4
    document = Document(
        "t", lead=(Paragraph(prose), Quote("s", prose), Table(("a", "b"), ((prose, "x"),)), Verdict("warn", prose))
    )
    assert max(cells(line) for line in text.render(document, 50).split("\n")) <= 50


@given(
    st.text(st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp", "Mn", "Me"]), max_size=80),
    st.integers(4, 30),
)
def test_wrapping_loses_no_character_but_white_space(prose: str, width: int) -> None:
    lines = wrapped(prose, width)
    assert all(cells(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(prose.split())


def test_wide_characters_take_two_cells_in_a_table() -> None:
    page = text.render(Document("t", lead=(Table(("列", "b"), (("中文", "x"), ("ab", "y"))),)), 40)
    assert "中文  x\nab    y" in page


def test_a_clean_audit_says_so_in_one_sentence() -> None:
    assert "Clean: no findings in 3 analysed files." in text.render(dossier.document(CLEAN, language="en", root="."))
