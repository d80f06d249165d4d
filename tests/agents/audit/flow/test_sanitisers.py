"""Functions of the project that clean or test, fixed choices, paths under a root."""

from __future__ import annotations

import pytest

from agents.audit.flow.programs import difference, programs

PROGRAMS = programs(
    r"""
#### replacements
import re
def a():
    run(re.sub(r"[^a-z0-9]", "", Q))
    run(re.sub(r"[;]", "", Q))  # bad
    run(Q.replace(";", ""))  # bad
    run(re.sub(r"\W+", "_", Q))
    run(re.sub(r"[^a-z]", Q, "ls"))  # bad
    run(re.sub("a", "b", "ls"))

#### fixed choices
MAP = {"a": "ls", "b": "ps"}
ALLOWED = ["ls", "ps"]
def h():
    run(MAP[Q])
    run(MAP.get(Q, "ls"))
    run(MAP.get(Q, Q))  # bad
    run(next((x for x in ALLOWED if x == Q), "ls"))
    run([x for x in ALLOWED if x == Q][0])
    run(ALLOWED[int(Q)])
    run(ALLOWED[ALLOWED.index(Q)])
    for x in ALLOWED:
        if x == Q:
            run(x)
    run("ls" if Q == "a" else "ps")
    run({True: "ls", False: "ps"}[Q == "a"])
    run(("ls", "ps")[Q == "a"])

#### own sanitisers
import re
def letters(x): return re.sub(r"[^a-z0-9]", "", x)
def fixed(x): return x if x in ("a", "b") else "a"
def weak(x): return x.replace("'", "''")
def number(x): return int(x)
def checked(x):
    if not x.isalnum():
        raise ValueError
    return x
def h():
    run(letters(Q))
    run(fixed(Q))
    run(weak(Q))  # bad
    run(str(number(Q)))
    run(checked(Q))

#### own validators
import re
def must(x):
    if not re.fullmatch(r"\w+", x):
        raise ValueError(x)
def may(x):
    if not re.fullmatch(r"\w+", x):
        print("odd")
def is_ok(x): return re.fullmatch(r"\w+", x) is not None
def is_any(x): return len(x) > 3
def is_listed(x):
    if x in ("a", "b"):
        return True
    return False
def loop_ok(x):
    for c in x:
        if not c.isalnum():
            return False
    return True
def tests(x): return bool(re.fullmatch(r"\w+", x))
def nested(x): return is_ok(x)
def a():
    q = Q
    must(q)
    run(q)
def b():
    q = Q
    may(q)
    run(q)  # bad
def c():
    q = Q
    if not is_ok(q):
        return
    run(q)
def d():
    q = Q
    if is_any(q):
        run(q)  # bad
def e():
    q = Q
    if is_listed(q):
        run(q)
    else:
        run(q)  # bad
def f():
    q = Q
    is_ok(q)
    run(q)  # bad
def g():
    q = Q
    if tests(q):
        run(q)
def i():
    q = Q
    if not nested(q):
        abort(400)
    run(q)
class V:
    @staticmethod
    def ok(x): return x in ("a", "b")
    def must(self, x):
        if x not in ("a", "b"): raise ValueError
def j():
    q = Q
    if V.ok(q):
        run(q)
def k():
    q = Q
    V().must(q)
    run(q)
def l():
    q = Q
    ok = is_ok(q)
    if ok:
        run(q)
def m():
    q = Q
    if not is_ok(x=q):
        return
    run(q)
def n():
    q = Q
    if not loop_ok(q):
        return
    run(q)

#### paths
import os
from pathlib import Path
ROOT = "/srv/docs"
BASE = Path("/srv/docs").resolve()
def a():
    target = os.path.realpath(os.path.join(ROOT, Q))
    if not target.startswith(ROOT):
        abort(404)
    return open(target).read()  # bad
def b():
    target = os.path.realpath(os.path.join(ROOT, Q))
    if not target.startswith(ROOT + os.sep):
        abort(404)
    open(target)
def c():
    target = (BASE / Q).resolve()
    if not target.is_relative_to(BASE):
        abort(404)
    open(target)
def d():
    target = (BASE / Q).resolve()
    try:
        target.relative_to(BASE)
    except ValueError:
        abort(404)
    open(target)
def e():
    target = BASE / Q
    if not target.is_relative_to(BASE):
        abort(404)
    open(target)  # bad
def f():
    target = os.path.abspath(os.path.join(ROOT, Q))
    if os.path.commonpath([ROOT, target]) != ROOT:
        abort(404)
    open(target)
def g():
    open(os.path.join(ROOT, os.path.basename(Q)))
def i():
    open(os.path.join(ROOT, Path(Q).name))
def j():
    open(os.path.join(ROOT, Q))  # bad
def k():
    target = (BASE / Q).resolve()
    if BASE not in target.parents:
        abort(404)
    target.read_text()
def l():
    q = Q
    if ".." in q or q.startswith("/"):
        abort(404)
    open(os.path.join(ROOT, q))
def m():
    q = Q
    if ".." in q:
        print("odd")
    open(os.path.join(ROOT, q))  # bad
def n():
    target = os.path.join(ROOT, Q)
    if os.path.commonprefix([os.path.realpath(target), ROOT]) != ROOT:
        abort(404)
    open(target)  # bad
def safe(name):
    target = (BASE / name).resolve()
    if not target.is_relative_to(BASE):
        raise ValueError
    return target
def p():
    open(safe(Q))

#### a table name from a fixed dictionary
import sqlite3
TABLES = {"day": "sales_day", "week": "sales_week"}
def fetch(period, shop):
    table = TABLES[period]
    con = sqlite3.connect("shop.db")
    return con.execute(f"SELECT amount FROM {table} WHERE shop = ?", (shop,)).fetchall()
def h(): fetch(Q, Q)
def i():
    cur = sqlite3.connect("shop.db").cursor()
    col = request.args.get("col", "id")
    cur.execute(f"SELECT {col} FROM invoice WHERE paid = 1")  # bad
"""
)


@pytest.mark.parametrize("title", PROGRAMS)
def test_exactly_the_marked_lines_are_flagged(title: str) -> None:
    missed, false_alarms = difference(PROGRAMS[title])
    assert (missed, false_alarms) == (set(), set())
