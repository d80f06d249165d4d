"""A fix is offered only with proof: it parses, keeps the sink, and the rule is silent where it stands."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from agents.material import findings_of
from casemate.agents.audit.facts.syntax import parse
from casemate.agents.audit.mending.edits import Region
from casemate.agents.audit.mending.fixes import accepts, mend_file
from casemate.agents.audit.rules import RULES, Rule
from casemate.agents.audit.scan import scan
from casemate.finding import Location
from casemate.process import Limits

_ROUTE = "from flask import Flask, request\nimport sqlite3, os, subprocess, yaml, requests\napp = Flask(__name__)\n"
_QUERY = (
    _ROUTE
    + """\
@app.route("/")
def f():
    uid = request.args["uid"]
    db = sqlite3.connect("x")
    return {"r": db.execute("SELECT a FROM t WHERE id=" + uid).fetchone()}
"""
)


_CHECKED_ELSEWHERE = """\
    if request.args["kind"] == "number":
        uid.isdigit()
    return {"r": db.execute(f"SELECT a FROM t WHERE id={uid}").fetchone()}"""


@pytest.mark.parametrize(
    ("query", "fixed"),
    [
        ('"SELECT a FROM t WHERE b = " + x', '"SELECT a FROM t WHERE b = ?", (x,)'),
        ('"SELECT a FROM t WHERE b = \'" + x + "\'"', '"SELECT a FROM t WHERE b = ?", (x,)'),
        ("f\"SELECT a FROM t WHERE b = '{x}' AND c > {y}\"", '"SELECT a FROM t WHERE b = ? AND c > ?", (x, y)'),
        ("\"SELECT a FROM t WHERE b = %s AND c = '%s'\" % (x, y)", '"SELECT a FROM t WHERE b = ? AND c = ?", (x, y)'),
        ('"SELECT a FROM t WHERE b = {} LIMIT {n}".format(x, n=y)', '"SELECT a FROM t WHERE b = ? LIMIT ?", (x, y)'),
        ("f\"SELECT a FROM t WHERE b LIKE '%{x}%'\"", "\"SELECT a FROM t WHERE b LIKE ?\", (f'%{x}%',)"),
        ("f\"INSERT INTO t (b, c) VALUES ('{x}', '{y}')\"", '"INSERT INTO t (b, c) VALUES (?, ?)", (x, y)'),
        ("f\"UPDATE t SET b = '{x}' WHERE c IN ({y})\"", '"UPDATE t SET b = ? WHERE c IN (?)", (x, y)'),
    ],
)
def test_values_in_a_query_are_bound_however_it_was_put_together(query: str, fixed: str) -> None:
    code = f"import sqlite3\ndef f(db, x, y):\n    return db.execute({query}).fetchall()\n"
    (finding,) = findings_of(code)
    assert finding.fix == f"return db.execute({fixed}).fetchall()"


@pytest.mark.parametrize(
    "query",
    [
        'f"SELECT {x} FROM t"',
        'f"SELECT a FROM {x} WHERE b = 1"',
        '"SELECT a FROM t ORDER BY " + x',
        'f"SELECT a FROM t WHERE {x} = 1"',
        'f"SELECT a FROM t WHERE b = {x:>10}"',
        "f\"SELECT a FROM t WHERE b = 'a{x}b'\"",
        'f"SELECT a FROM t{x}"',
    ],
)
def test_what_cannot_be_bound_gets_no_automatic_fix(query: str) -> None:
    (finding,) = findings_of(f"import sqlite3\ndef f(db, x):\n    return db.execute({query}).fetchall()\n")
    assert finding.cwe == "CWE-89"
    assert finding.fix == ""


def test_a_query_kept_in_a_variable_is_mended_where_it_is_made_and_where_it_is_used() -> None:
    code = 'def f(cursor, uid):\n    query = "SELECT a FROM t WHERE id = \'" + uid + "\'"\n    cursor.execute(query)\n'
    (finding,) = findings_of(code)
    assert finding.fix == 'query = "SELECT a FROM t WHERE id = ?"\ncursor.execute(query, (uid,))'


def test_the_placeholder_is_the_one_of_the_imported_driver() -> None:
    code = 'import psycopg2\ndef f(cursor, uid):\n    cursor.execute("SELECT a FROM t WHERE id = " + uid)\n'
    assert findings_of(code)[0].fix == 'cursor.execute("SELECT a FROM t WHERE id = %s", (uid,))'


@pytest.mark.parametrize(
    ("line", "fixed"),
    [
        ("yaml.load(x, Loader=yaml.Loader)", "yaml.safe_load(x)"),
        (
            'requests.get("https://a.example.com", verify=False, timeout=5)',
            'requests.get("https://a.example.com", timeout=5)',
        ),
        ('subprocess.run(f"ping -c 1 {x}", shell=True)', 'subprocess.run(["ping", "-c", "1", x])'),
        ('subprocess.run("id " + x, shell=True, check=True)', 'subprocess.run(["id", x], check=True)'),
        ('subprocess.run(f"ping {x} | grep ms", shell=True)', ""),
        ('subprocess.run(f"cat /srv/{x}.txt", shell=True)', ""),
        ('os.system("ping " + x)', ""),
        ("app.run(debug=True)", "app.run()"),
    ],
)
def test_other_switches_are_mended_where_it_is_statically_clear(line: str, fixed: str) -> None:
    code = f"{_ROUTE}\ndef f(x):\n    {line}\n"
    (finding,) = findings_of(code)
    assert finding.fix == fixed


def test_a_file_that_takes_too_long_to_mend_keeps_its_findings_without_fixes_and_the_others_keep_theirs(
    tmp_path: Path,
) -> None:
    weak = "import yaml\ndef f(x):\n    return yaml.load(x, Loader=yaml.Loader)\n"
    (tmp_path / "a.py").write_text(weak)
    (tmp_path / "b.py").write_text("import yaml\n" + weak.partition("\n")[2] * 500)
    (tmp_path / "c.py").write_text(weak)
    result = scan(tmp_path, limits=Limits(time_s=2.0, memory_bytes=2 << 30, processes=2))
    fixed = Counter((finding.location.path, bool(finding.fix)) for finding in result.findings)
    assert fixed == {("a.py", True): 1, ("b.py", False): 500, ("c.py", True): 1}
    assert result.ledger.complete


def test_a_file_that_can_no_longer_be_read_gets_no_fixes(tmp_path: Path) -> None:
    wanted = [("unsafe-yaml", Location("gone.py", 1, 1, 1, 2))] * 3
    assert mend_file(str(tmp_path), ("gone.py", wanted)) == [None, None, None]


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.id)
def test_a_fix_of_a_rules_own_example_parses_and_silences_the_rule(rule: Rule) -> None:
    for finding in findings_of(rule.bad):
        if finding.fix and finding.fix.count("\n") == 0:
            lines = rule.bad.splitlines()
            old = lines[finding.location.line - 1]
            lines[finding.location.line - 1] = old[: len(old) - len(old.lstrip())] + finding.fix
            mended = "\n".join(lines) + "\n"
            ast.parse(mended)
            assert (finding.rule, finding.location.line) not in {(f.rule, f.location.line) for f in findings_of(mended)}


@pytest.mark.parametrize(
    ("replacement", "accepted"),
    [
        ('    return {"r": db.execute("SELECT a FROM t WHERE id=?", (uid,)).fetchone()}', True),
        (_CHECKED_ELSEWHERE, False),
        ('    return {"r": db.execute("SELECT a FROM t WHERE id=?", (uid,).fetchone()}', False),
        ('    return {"r": None}', False),
        ('    return {"r": db.execute("SELECT a FROM t WHERE id=" + str(uid)).fetchone()}', False),
    ],
    ids=["bound", "checked in another branch", "does not compile", "query deleted", "still concatenated"],
)
def test_the_gate_takes_a_fix_only_if_it_parses_keeps_the_sink_and_closes_the_hole(
    replacement: str, *, accepted: bool
) -> None:
    source = parse(_QUERY, "app.py")
    (finding,) = findings_of(_QUERY, "app.py")
    line = finding.location.line
    found = (finding.rule, finding.location)
    assert accepts(source, found, change=Region(line, line, replacement), snippet=False) is accepted


def test_the_gate_refuses_a_change_for_a_place_that_the_file_does_not_have() -> None:
    (finding,) = findings_of(_QUERY, "elsewhere.py")
    change = Region(finding.location.line, finding.location.line, "    return {}")
    assert not accepts(parse(_QUERY, "app.py"), (finding.rule, finding.location), change=change, snippet=False)
