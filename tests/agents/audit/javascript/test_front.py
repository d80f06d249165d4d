"""JavaScript and TypeScript as they come: bundles, broken places, marks, secrets, odd text, the way through a scan."""

from __future__ import annotations

from pathlib import Path

import pytest

from casemate.agents.audit.facts.summary import Hit
from casemate.agents.audit.javascript.advice import advice
from casemate.agents.audit.javascript.summary import summarize
from casemate.agents.audit.linking.link import Reached, link
from casemate.agents.audit.rules import RULES
from casemate.agents.audit.scan import scan
from casemate.agents.audit.wording import wording

_SINK = "document.body.innerHTML = location.hash;\n"


def _hits(code: str, path: str = "app.js") -> list[Hit]:
    return [reached.hit for reached in link([summarize(code, path)]) if isinstance(reached, Reached)]


def _bundle() -> str:
    return "!function(){" + "document.body.innerHTML=location.hash;" * 8000 + "}();"


def test_a_bundle_beside_its_source_is_skipped_and_the_source_has_the_one_finding(tmp_path: Path) -> None:
    (tmp_path / "app.js").write_text("// page\n" * 39 + _SINK, encoding="utf-8")
    (tmp_path / "app.min.js").write_text(_bundle(), encoding="utf-8")
    found = scan(tmp_path)
    assert [(f.rule, f.location.path, f.location.line) for f in found.findings] == [
        ("cross-site-scripting", "app.js", 40)
    ]
    assert [(unread.path, unread.reason) for unread in found.ledger.skipped] == [("app.min.js", "minified")]
    assert found.ledger.analysed == 1
    assert found.ledger.complete


@pytest.mark.parametrize(
    ("text", "skipped"),
    [
        (_bundle(), True),
        (_SINK * 10 + "var data = '" + "x" * 60_000 + "';\n", True),
        (("a();" * 60 + "\n") * 40 + "//# sourceMappingURL=app.js.map\n", True),
        (("a();" * 60 + "\n") * 40, False),
        (_SINK * 10 + "//# sourceMappingURL=app.js.map\n", False),
        ("x=" + "1+" * 300 + "1", False),
    ],
)
def test_what_a_machine_wrote_for_a_machine_is_told_by_its_content(text: str, *, skipped: bool) -> None:
    assert bool(summarize(text, "plain.js").skipped) is skipped


def test_a_finding_carries_verbatim_lines_columns_in_characters_its_scope_and_both_steps() -> None:
    inner = '    const t = location.hash;\n    /* 问候 */ box.innerHTML = "你好" + t; // nosec\n'
    code = "class 店 {\n  zeige() {\n" + inner + "  }\n}\n"
    (reached,) = link([summarize(code, "页.js")])
    assert isinstance(reached, Reached)
    assert reached.flow is not None
    hit = reached.hit
    line = code.splitlines()[3]
    assert hit.evidence == line
    assert line[hit.location.column - 1 : hit.location.end_column - 1] == 'box.innerHTML = "你好" + t' == hit.code
    assert hit.scope == "店.zeige"
    assert hit.suppressed
    assert [(step.location.line, step.note) for step in reached.flow.steps] == [
        (3, "untrusted input: location.hash"),
        (4, "sink"),
    ]


@pytest.mark.parametrize(
    ("before", "behind", "suppressed"),
    [
        ("", " // nosemgrep: some.rule", True),
        ("", " // NOSONAR", True),
        ("// eslint-disable-next-line no-unsanitized/property\n", "", True),
        ("", " // shows the hash", False),
        ('const say = "// nosec";\n', "", False),
    ],
)
def test_marks_in_comments_are_counted(before: str, behind: str, *, suppressed: bool) -> None:
    (hit,) = _hits(before + _SINK.rstrip() + behind + "\n")
    assert hit.suppressed is suppressed


def test_a_secret_shows_in_no_line_of_any_finding() -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 4
    code = f'const key = "{secret}"; document.write(location.hash + "{secret}");\n'
    module = summarize(code, "app.js")
    assert {hit.rule for hit in module.hits} == {"hard-coded-secret", "cross-site-scripting"}
    assert secret not in repr(module)


def test_a_broken_place_is_counted_and_the_rest_is_analysed() -> None:
    module = summarize("function ok() { return 1; }\n" * 20 + "let = = ;\n" + _SINK, "app.js")
    assert len(module.hits) == 1
    assert len(module.remarks) == 1
    assert "syntax not understood" in module.remarks[0]


def test_a_file_that_is_hardly_javascript_at_all_fails_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "odd.js").write_text("%%% §§ ((( ]]] @@@ ### :: ;; <<< \\\\ " * 30, encoding="utf-8")
    found = scan(tmp_path)
    assert not found.findings
    assert [unread.path for unread in found.ledger.failed] == ["odd.js"]
    assert "no valid syntax" in found.ledger.failed[0].reason


@pytest.mark.parametrize(
    "code",
    [
        "(" * 4000 + "1" + ")" * 4000,
        "[" * 4000 + "]" * 4000,
        "if(a)" * 4000 + ";",
        "a" + ".b()" * 4000,
        "!" * 4000 + "a",
    ],
    ids=["parentheses", "brackets", "branches", "chain", "not"],
)
def test_deep_nesting_is_analysed_or_fails_in_order(tmp_path: Path, code: str) -> None:
    (tmp_path / "deep.js").write_text("\n".join(code[at : at + 80] for at in range(0, len(code), 80)), encoding="utf-8")
    ledger = scan(tmp_path).ledger
    assert ledger.analysed + len(ledger.failed) == 1


def test_a_sum_of_thousands_of_pieces_is_followed() -> None:
    assert len(_hits("box.innerHTML = location.hash" + "\n + 'x'" * 5000 + ";\n")) == 1


def test_lines_that_end_in_carriage_returns_count_as_lines() -> None:
    assert [hit.location.line for hit in _hits("let a = 1;\r\n" * 3 + _SINK)] == [4]
    assert [hit.location.line for hit in _hits("let a = 1;\r" * 3 + _SINK)] == [4]


def test_halves_of_surrogate_pairs_do_not_stop_the_analysis() -> None:
    assert len(_hits("const a = '\udcff';\n" + _SINK)) == 1


@pytest.mark.parametrize("ending", ["js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx"])
def test_every_ending_is_analysed(tmp_path: Path, ending: str) -> None:
    (tmp_path / f"a.{ending}").write_text(_SINK, encoding="utf-8")
    assert [finding.cwe for finding in scan(tmp_path).findings] == ["CWE-79"]


def test_an_old_type_assertion_and_an_element_are_each_read_in_their_dialect() -> None:
    assert len(_hits("const t = <string>location.hash;\n" + "box.innerHTML = t;\n", "a.ts")) == 1
    assert len(_hits("const t = <b dangerouslySetInnerHTML={{ __html: location.hash }} />;\n", "a.tsx")) == 1


def test_fingerprints_stay_when_lines_move_and_runs_agree(tmp_path: Path) -> None:
    path = tmp_path / "a.js"
    path.write_text(_SINK, encoding="utf-8")
    first = scan(tmp_path).findings
    assert scan(tmp_path).findings == first
    path.write_text("// moved\n\n" + _SINK, encoding="utf-8")
    assert [f.fingerprint for f in scan(tmp_path).findings] == [f.fingerprint for f in first]


def test_advice_speaks_of_the_language_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text(_SINK, encoding="utf-8")
    (finding,) = scan(tmp_path).findings
    assert "textContent" in wording(finding, "en").guidance
    assert "textContent" in wording(finding, "zh").guidance
    for rule in RULES:
        english, chinese = advice(rule, "a.ts", language="en"), advice(rule, "a.ts", language="zh")
        assert bool(english) == bool(chinese)
        assert english.isascii()
        assert not advice(rule, "a.py", language="en")
