"""Guards: tests after which a value is harmless, and tests after which it is not."""

from __future__ import annotations

import pytest

from agents.audit.flow.programs import difference, programs

PROGRAMS = programs(
    r"""
#### membership in a fixed set
ALLOWED = {"a", "b"}
LIST = ["a", "b"]
FROZEN = frozenset({"a", "b"})
TABLE = {"a": 1}
def a():
    q = Q
    if q in ALLOWED:
        run(q)
    run(q)  # bad
def b():
    q = Q
    if q not in LIST:
        raise ValueError
    run(q)
def c():
    q = Q
    if q not in FROZEN:
        return "no"
    run(q)
def d():
    q = Q
    if q not in TABLE:
        abort(400)
    run(q)
def e():
    q = Q
    if q not in ("a", "b"):
        q = "a"
    run(q)
def f():
    for q in Q.split():
        if q not in TABLE.keys():
            continue
        run(q)
def g():
    q = Q
    if q in Q.split():
        run(q)  # bad
def h():
    q = Q
    if q not in ("a", "b"):
        print("no")
    run(q)  # bad
def i():
    q = Q
    if q in "abc":
        run(q)
    if "x" in q:
        run(q)  # bad
def j():
    q = Q if Q in ("a", "b") else "a"
    run(q)
def k():
    q = Q
    ok = q in ("a", "b")
    if not ok:
        return
    run(q)
def l():
    q = Q
    if q.lower() not in {"a", "b"}:
        return
    run(q)

#### guards on something else or too late
def a():
    q, r = Q, request.args["r"]
    if r not in ("a", "b"):
        return
    run(q)  # bad
def b():
    q = Q
    run(q)  # bad
    if q not in ("a", "b"):
        return
def c():
    q = Q
    if q in ("a", "b"):
        q = request.args["x"]
        run(q)  # bad
def d():
    q = Q
    if q not in ("a", "b") and request.args["force"] != "1":
        return
    run(q)  # bad
def e():
    q = Q
    if q in ("a", "b") or request.args["force"]:
        run(q)  # bad
def f():
    q = Q
    if q in ("a", "b") and request.args["force"]:
        run(q)
def g():
    q = Q
    if not (q in ("a", "b") or q == "c"):
        return
    run(q)

#### equality
def a():
    q = Q
    if q == "ls":
        run(q)
    elif q == "ps" or q == "df":
        run(q)
    else:
        run(q)  # bad
def b():
    q = Q
    if q != "ls":
        return
    run(q)
def c():
    q = Q
    if q == request.args["x"]:
        run(q)  # bad
def d():
    q = Q
    if q != "":
        run(q)  # bad
def e():
    q = Q
    if q is None:
        return
    run(q)  # bad

#### several tests in one
def a():
    q = Q
    if q and q in ("a", "b") and len(q) < 3:
        run(q)
def b():
    q = Q
    if not q or q not in ("a", "b"):
        return
    run(q)
def c():
    d = {"x": Q}
    if d["x"] not in ("a", "b"):
        return
    run(d["x"])
def e():
    if Q not in ("a", "b"):
        return
    run(Q)
class A:
    def f(self):
        self.q = Q
        if self.q not in ("a", "b"):
            return
        run(self.q)
def g():
    q, r = Q, request.args["r"]
    if q in ("a", "b") and r in ("c", "d"):
        run(q + r)
def i():
    q = Q
    r = q
    if q not in ("a", "b"):
        return
    run(r)
def j():
    q = Q
    r = "ls " + q
    if q not in ("a", "b"):
        return
    run(r)
def k():
    items = Q.split(",")
    if not all(i in ("a", "b") for i in items):
        return
    run(" ".join(items))
def l():
    items = Q.split(",")
    if any(i not in ("a", "b") for i in items):
        return
    run(" ".join(items))
def m():
    items = Q.split(",")
    for i in items:
        if i not in ("a", "b"):
            abort(400)
    run(" ".join(items))
"""
)


@pytest.mark.parametrize("title", PROGRAMS)
def test_exactly_the_marked_lines_are_flagged(title: str) -> None:
    missed, false_alarms = difference(PROGRAMS[title])
    assert (missed, false_alarms) == (set(), set())
