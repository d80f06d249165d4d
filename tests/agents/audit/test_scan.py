"""What a scan says: the odd cases that tools of this kind are reported to get wrong, each as a test of its kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.material import findings_of
from casemate.agents.audit.scan import scan, scan_snippet
from casemate.finding import Confidence, Finding, Severity, Unread

_FLASK = "import os\nimport sqlite3\nimport flask\nfrom flask import Flask, abort, request\n\napp = Flask(__name__)\n"


def _tree(root: Path, **files: str) -> tuple[Finding, ...]:
    for name, text in files.items():
        path = root / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return scan(root).findings


def test_a_table_name_from_a_constant_dictionary_beside_a_bound_value_is_no_injection(tmp_path: Path) -> None:
    code = (
        'TABLES = {"day": "sales_day", "week": "sales_week"}\n'
        "def fetch(period, shop):\n"
        "    table = TABLES[period]\n"
        '    con = sqlite3.connect("shop.db")\n'
        '    return con.execute(f"SELECT amount FROM {table} WHERE shop = ?", (shop,)).fetchall()\n'
        '@app.route("/")\n'
        "def page():\n"
        '    return {"rows": fetch(request.args["period"], request.args["shop"])}\n'
    )
    assert _tree(tmp_path, s01=_FLASK + code) == ()
    assert findings_of(_FLASK + code) == ()


def test_a_column_from_the_request_is_one_finding_at_the_execute_line_without_a_wrong_fix(tmp_path: Path) -> None:
    code = (
        '@app.route("/invoices")\n'
        "def invoices():\n"
        '    col = request.args.get("col", "id")\n'
        '    cur = sqlite3.connect("x.db").cursor()\n'
        '    cur.execute(f"SELECT {col} FROM invoice WHERE paid = 1")\n'
        "    return {'rows': cur.fetchall()}\n"
    )
    (finding,) = _tree(tmp_path, s03=_FLASK + code)
    assert (finding.cwe, finding.severity, finding.location.line) == ("CWE-89", Severity.HIGH, 11)
    assert finding.technique == "T1190"
    assert finding.fix == ""


def test_a_prefix_test_without_the_separator_leaves_the_path_open(tmp_path: Path) -> None:
    code = (
        'ROOT = "/srv/docs"\n'
        '@app.route("/doc")\n'
        "def doc():\n"
        '    target = os.path.realpath(os.path.join(ROOT, request.args["name"]))\n'
        "    if not target.startswith({}):\n"
        "        abort(404)\n"
        "    return {{'text': open(target).read()}}\n"
    )
    (finding,) = _tree(tmp_path / "open", s05=_FLASK + code.format("ROOT"))
    assert (finding.cwe, finding.location.line) == ("CWE-22", 13)
    for closed in ("ROOT + os.sep", 'ROOT + "/"', 'f"{ROOT}/"'):
        assert _tree(tmp_path / "closed", s05=_FLASK + code.format(closed.replace("{ROOT}", "{ROOT}"))) == ()


def test_a_sink_behind_an_attribute_set_in_another_method_has_a_flow_of_three_steps(tmp_path: Path) -> None:
    store = (
        "import sqlite3\n"
        "class Store:\n"
        "    def __init__(self, p):\n"
        "        self.cur = sqlite3.connect(p).cursor()\n"
        "    def find(self, v):\n"
        "        self.cur.execute(f\"SELECT id FROM link WHERE url = '{v}'\")\n"
        "        return self.cur.fetchall()\n"
    )
    page = _FLASK + (
        "from links.store import Store\n"
        'store = Store("links.db")\n'
        '@app.route("/find")\n'
        "def find():\n"
        '    return {"rows": store.find(request.args["v"])}\n'
    )
    (finding,) = _tree(tmp_path, links____init__="", links__store=store, links__page=page)
    assert (finding.cwe, finding.severity, finding.location.path) == ("CWE-89", Severity.HIGH, "links/store.py")
    assert [(step.location.path, step.location.line) for step in finding.flow] == [
        ("links/page.py", 11),
        ("links/page.py", 11),
        ("links/store.py", 6),
    ]


def test_suppression_marks_never_hide_a_finding(tmp_path: Path) -> None:
    marks = ("# nosec", "# nosemgrep", "# noqa: S301", "# noqa", "# nosec B301  # nosemgrep")
    for mark in marks:
        code = (
            f'import pickle\n@app.route("/")\ndef load():\n    return str(pickle.loads(flask.request.data))  {mark}\n'
        )
        (finding,) = _tree(tmp_path, s09=_FLASK + code)
        assert (finding.cwe, finding.severity, finding.suppressed) == ("CWE-502", Severity.HIGH, True)
    code = (
        'import pickle\n@app.route("/")\ndef load():\n    return str(pickle.loads(flask.request.data))  # see notes\n'
    )
    assert [finding.suppressed for finding in _tree(tmp_path, s09=_FLASK + code)] == [False]


def test_a_parameter_counts_in_a_snippet_but_in_a_tree_only_if_tainted_by_a_caller(
    tmp_path: Path,
) -> None:
    code = 'import os\ndef ping(host):\n    os.system("ping " + host)\n'
    (finding,) = findings_of(code)
    assert finding.confidence == Confidence.MEDIUM
    assert _tree(tmp_path / "quiet", net=code) == ()
    assert _tree(tmp_path / "constant", net=code, use='from net import ping\nping("localhost")\n') == ()
    (finding,) = _tree(tmp_path / "loud", net=code, use="import sys\nfrom net import ping\nping(sys.argv[1])\n")
    assert finding.location.path == "net.py"


def test_what_one_caller_passes_does_not_leak_into_the_result_of_another_call(tmp_path: Path) -> None:
    code = (
        "def same(x):\n    return x\n"
        '@app.route("/")\ndef page():\n    seen = same(request.args["x"])\n'
        '    os.system("ls " + same("/srv"))\n    return {}\n'
    )
    assert _tree(tmp_path, app=_FLASK + code) == ()


def test_a_snippet_may_be_indented() -> None:
    assert [f.cwe for f in findings_of('    import os\n    def run(cmd):\n        os.system("x " + cmd)\n')] == [
        "CWE-78"
    ]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("def broken(:\n", "not valid Python: "),
        ("这不是代码，请看 here", "not valid Python: "),
        ("x = 1\0", "null bytes"),
        ("(" * 5000, "not valid Python: "),
        ("x = " + "-" * 20_000 + "1", "nested too deeply for the parser"),
    ],
    ids=["broken", "prose", "null byte", "brackets", "nested"],
)
def test_a_snippet_that_cannot_be_analysed_says_why_and_is_not_without_findings(code: str, reason: str) -> None:
    outcome = scan_snippet(code)
    assert isinstance(outcome, Unread)
    assert reason in outcome.reason


def test_a_concatenated_identifier_in_a_pasted_call_is_an_injection_with_a_bound_fix() -> None:
    code = (
        'import sqlite3\ncursor = sqlite3.connect("users.db").cursor()\n'
        'cursor.execute("SELECT * FROM users WHERE id = " + user_id)\n'
    )
    (finding,) = findings_of(code)
    assert finding.cwe == "CWE-89"
    assert finding.fix == 'cursor.execute("SELECT * FROM users WHERE id = ?", (user_id,))'
    assert any(clause.framework == "GDPR" for clause in finding.clauses)


def test_columns_count_characters_not_bytes() -> None:
    code = 'import os\ndef f(名):\n    print("变量"); os.system("列出 " + 名)\n'
    (finding,) = findings_of(code)
    line = code.splitlines()[2]
    assert line[finding.location.column - 1 : finding.location.end_column - 1] == 'os.system("列出 " + 名)'


def test_fingerprints_do_not_move_with_lines_and_tell_equal_places_apart() -> None:
    code = "import os\ndef f(a):\n    os.system('x ' + a)\n    os.system('x ' + a)\n"
    first, second = (finding.fingerprint for finding in findings_of(code))
    assert first != second
    assert [finding.fingerprint for finding in findings_of("# moved\n\n" + code)] == [first, second]


def test_dead_branches_and_overwritten_names_are_followed() -> None:
    head = _FLASK + "@app.route('/')\ndef f():\n    a = request.args['a']\n"
    dead = head + "    if 7 * 18 > 100:\n        b = 'x'\n    else:\n        b = a\n    os.system(b)\n    return {}\n"
    alive = dead.replace("> 100", "> 200")
    assert findings_of(dead) == ()
    assert [finding.cwe for finding in findings_of(alive)] == ["CWE-78"]


def test_secrets_are_masked_in_evidence_of_every_finding_that_shows_their_line() -> None:
    secret = "AKIA" + "Q3EGTR5W7ZK2MN4P"
    code = f'import requests\nrequests.get("https://x.example.com", auth=("{secret}", "x"), verify=False)\n'
    findings = findings_of(code)
    assert {finding.rule for finding in findings} == {"hard-coded-secret", "certificate-not-verified"}
    assert secret not in repr(findings)
    assert all("AKIA…(masked)" in finding.evidence for finding in findings)


def test_an_audited_tree_is_never_imported_or_run(tmp_path: Path) -> None:
    witness = tmp_path / "ran"
    code = f"open({str(witness)!r}, 'w').close()\nraise SystemExit(9)\n"
    _tree(tmp_path / "tree", ast=code, casemate=code, app=code, sitecustomize=code)
    assert not witness.exists()
