"""Chinese reports speak Chinese: what the audit notes in English is told in the reader's language."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import casemate.agents.audit
from casemate.agents import dossier
from casemate.agents.audit.notes import is_told, told
from casemate.agents.audit.scan import scan
from casemate.finding import AuditResult, ModelNote
from casemate.report.document import Block, Code, Figures, Fold, Paragraph, Section, Steps, Table, Verdict

_AUDIT = Path(casemate.agents.audit.__path__[0])
_SHOP = Path(__file__).parents[3] / "examples" / "shop"
_NAMES = re.compile(r"（[A-Z][^）]*）|`[^`]*`|[\w./-]+\.\w+|Flask|Werkzeug|Secure")
"""What may stand in English: official names in brackets, code, files."""


def _texts(node: ast.expr | None) -> Iterator[str]:
    """The texts that an expression may give; what is filled in is an `x`."""
    match node:
        case ast.Constant(value=str(text)) if text:
            yield text
        case ast.JoinedStr(values=values):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in values)
        case ast.BoolOp(values=values):
            for value in values:
                yield from _texts(value)


def _notes() -> Iterator[str]:
    """Every note of a step that the analysis writes, by its source."""
    for path in [*_AUDIT.rglob("flow/*.py"), *_AUDIT.rglob("facts/*.py"), *_AUDIT.rglob("linking/*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "FlowStep" and len(node.args) > 1:
                yield from _texts(node.args[1])
            elif isinstance(node, ast.keyword) and node.arg == "note":
                yield from (text for text in _texts(node.value) if re.search(r"[a-z]{2}", text))
            elif isinstance(node, ast.Constant) and re.match(r"(untrusted|command) \w+:", str(node.value)):
                yield f"{str(node.value).strip()} x"  # put together with a name elsewhere


def test_every_note_of_a_step_has_its_chinese() -> None:
    notes = sorted(set(_notes()))
    assert len(notes) >= 8
    assert [note for note in notes if not is_told(note)] == []


@pytest.mark.parametrize(
    ("note", "chinese"),
    [
        ("untrusted input: route argument name", "不可信输入：路由参数 name"),
        ("untrusted input: request.args['q']", "不可信输入：request.args['q']"),
        ("sink", "危险操作"),
        ("no rules for this language (.c)", "没有该语言的规则（.c）"),
        ("not valid Python: invalid syntax (line 3)", "不是有效的 Python（第 3 行）"),
        ("no model: rules only; 2 failed, the first: broke", "没有使用模型：仅规则；2 个失败，第一个：broke"),
        ("something {new}", "something {new}"),
    ],
)
def test_a_note_is_told_in_chinese_and_stays_as_it_is_in_english(note: str, chinese: str) -> None:
    assert told(note, "zh") == chinese
    assert told(note, "en") == note


def test_a_chinese_report_holds_no_english_prose(tmp_path: Path) -> None:
    tree = tmp_path / "shop"
    for name, content in {"a.c": "int x;", "b.py": "def (:\n", "c.bin": "\0\1\2"}.items():
        tree.mkdir(exist_ok=True)
        (tree / name).write_text(content)
    (tree / "gone.py").symlink_to(tree / "nowhere.py")
    for path in _SHOP.rglob("*.py"):
        (tree / f"{path.parent.name}_{path.name}").write_text(path.read_text())
    found = scan(tree)
    result = AuditResult(found.findings, found.ledger, ModelNote("", "no model: rules only"))
    document = dossier.document(result, language="zh", root="shop")
    english = [
        text
        for section in document.sections
        for part in (section, *section.sections)
        for text in (part.title, *_prose(part.blocks))
        if re.search(r"[a-z]{3,} [a-z]{3,}", _NAMES.sub("", text))
    ]
    assert english == []


def _prose(blocks: tuple[Block, ...]) -> Iterator[str]:
    """The texts of a report that are no code, address or identifier."""
    for block in blocks:
        match block:
            case Paragraph(text=text) | Verdict(text=text):
                yield text
            case Figures(figures=figures):
                yield from (f"{figure.label} {figure.value}" for figure in figures)
            case Table(header=header, rows=rows):
                yield from (cell for row in (header, *rows) for cell in row)
            case Steps(steps=steps):
                yield from (step.note for step in steps)
            case Fold(title=title, blocks=inner):
                yield title
                yield from _prose(inner)
            case Code(caption=caption):
                yield caption
            case _:
                pass


def test_the_scan_for_english_would_notice_some() -> None:
    part = Section("", (Paragraph("Untrusted data is used here."),))
    assert [text for text in _prose(part.blocks) if re.search(r"[a-z]{3,} [a-z]{3,}", _NAMES.sub("", text))]
