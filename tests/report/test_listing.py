import pytest

from casemate.report import html, markdown, text
from casemate.report.document import Change, Code, Document, Fold, Mark, Paragraph, Section, Step, Steps
from casemate.report.listing import changed, numbered

_CODE = "query = (\n    a + b\n)"


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        (Code("x"), ["x"]),
        (Code("f(x)", first=9), ["  9 | f(x)"]),
        (Code("y = f(x)", first=9, mark=Mark(9, 9, 5, 9)), ["> 9 | y = f(x)", "    |     ^^^^"]),
        (Code("\tf(名)  # x", first=3, mark=Mark(3, 3, 2, 6)), ["> 3 | \tf(名)  # x", "    | \t^^^^^"]),
        (Code("f(x)", first=3, mark=Mark(3, 3, 1, 5)), ["> 3 | f(x)"]),
        (Code("f(x)", first=3, mark=Mark(3, 3, 40, 50)), ["  3 | f(x)"]),
        (Code("  f(\n  x)", first=9, mark=Mark(9, 10)), [">  9 |   f(", "> 10 |   x)"]),
        (Code("f(x)", first=3, mark=Mark(1, 2, 1, 2)), ["  3 | f(x)"]),
    ],
)
def test_numbered_code_points_at_the_very_span(code: Code, shown: list[str]) -> None:
    assert numbered(code) == shown


def test_a_change_keeps_what_stays_and_signs_what_goes_and_comes() -> None:
    change = Change(_CODE, "query = (\n    c\n)")
    assert list(changed(change)) == [(" ", "query = ("), ("-", "    a + b"), ("+", "    c"), (" ", ")")]


def test_every_form_shows_number_mark_change_and_steps() -> None:
    blocks = (
        Code("y = f(x)", "Evidence", "python", 9, Mark(9, 9, 5, 9)),
        Change("a", "b", "Fix"),
        Steps((Step("a.py:3", "untrusted input", "x = input()", "finding-1"),), "Flow"),
        Fold("More", (Paragraph("inside"),)),
    )
    inner = Section("1. it", blocks, anchor="finding-1", kind="high")
    outer = Section("Findings", (), (inner,), "findings", filters=(("", "all"), ("high", "high")))
    document = Document("t", (outer,), contents="Contents")
    page, lines, marked = html.render(document), text.render(document, 80), markdown.render(document)
    assert '<span class="line">9</span>y = <mark>f(x)</mark>' in page
    assert "<del>- a</del>\n<ins>+ b</ins>" in page
    assert '<a href="#finding-1"><span class="place">a.py:3</span></a> untrusted input' in page
    assert '<article class="high" id="finding-1">' in page
    assert 'id="only-all" checked>' in page
    assert '<li><a href="#findings">Findings</a></li>' in page
    assert "<details><summary>More</summary>\n<p>inside</p>\n</details>" in page
    assert "> 9 | y = f(x)\n          |     ^^^^" in lines
    assert "1. a.py:3: untrusted input\n          x = input()" in lines
    assert "```diff\n- a\n+ b\n```" in marked
    assert "1. `a.py:3`: untrusted input\n   `x = input()`" in marked


def test_code_of_a_step_cannot_leave_its_span_in_markdown() -> None:
    marked = markdown.render(Document("t", lead=(Steps((Step("p", "n", "a `b` ``c`` <img>"),)),)))
    assert "``` a `b` ``c`` <img> ```" in marked
