"""Data through functions of the project: arguments, defaults, results, wrappers, decorators."""

from __future__ import annotations

import pytest

from agents.audit.flow.programs import difference, programs

PROGRAMS = programs(
    r"""
#### five wrappers deep
def a(x): run(x)  # bad
def b(x): a(x)
def c(x): b("-" + x)
def d(x): c(x)
def e(x): d(x)
def h(): e(Q)

#### five wrappers deep with a constant
def a(x): run(x)
def b(x): a(x)
def c(x): b("-" + x)
def h():
    Q
    c("ls")

#### result of a function
def same(x): return x
def other(x): return "ls"
def h():
    run(same(Q))  # bad
    run(other(Q))
    run(same("ls"))

#### keyword arguments
def a(x, y): run(y)  # bad
def b(x, y): run(y)
def h():
    a(y=Q, x="1")
    b(x=Q, y="1")

#### star arguments
def a(*args): run(args[0])  # bad
def b(*args): run(args[1])
def h():
    a(Q)
    b(Q, "ls")

#### star arguments passed on
def a(x, y): run(x)  # bad
def b(*args): a(*args)
def c(x, y): run(y)
def h():
    b(Q, "x")
    items = ["-l", "ls"]
    c(*items)

#### keyword dictionary
def a(**kw): run(kw["cmd"])  # bad
def b(**kw): run(kw["cmd"])
def c(cmd, note): run(cmd)  # bad
def d(cmd, note): run(cmd)
def h():
    a(cmd=Q)
    b(cmd="ls", note=Q)
    c(**{"cmd": Q, "note": "x"})
    d(**{"cmd": "ls", "note": Q})

#### defaults
def a(x="ls"): run(x)
def b(x=None):
    x = x or Q
    run(x)  # bad
def h():
    a()
    b()

#### keyword only and positional only
def a(x, /, *, cmd): run(cmd)  # bad
def b(x, /, *, cmd): run(cmd)
def h():
    a("x", cmd=Q)
    b(Q, cmd="ls")

#### returned tuple keeps its members apart
def pair(): return Q, "ls"
def swap(a, b): return b, a
def h():
    x, y = pair()
    run(x)  # bad
    run(y)
    p, q = swap("ls", Q)
    run(p)  # bad
    run(q)
    run(pair()[0])  # bad
    run(pair()[1])

#### returned dictionary keeps its members apart
def both(v): return {"bad": v, "good": "ls"}
def h():
    d = both(Q)
    run(d["bad"])  # bad
    run(d["good"])
    run(d.get("good"))
    run(both(Q)["bad"])  # bad

#### dictionary built up and returned
def load():
    conf = {}
    conf["cmd"] = "ls"
    conf["name"] = Q
    return conf
def h():
    c = load()
    run(c["cmd"])
    run(c["name"])  # bad

#### what one caller passes does not come out at another
def same(x): return x
def h():
    a = same(Q)
    b = same("ls")
    run(b)
    run(a)  # bad

#### recursion
def down(x, n):
    if n == 0:
        return x
    return down(x, n - 1)
def count(x, n):
    if n == 0:
        return "ls"
    return count(x, n - 1)
def h():
    run(down(Q, 3))  # bad
    run(count(Q, 3))

#### the result of a mix of arguments
def join(a, b): return a + b
def h():
    run(join("ls ", Q))  # bad
    run(join("ls ", "-l"))

#### a function that changes its argument
def fill(d): d["cmd"] = Q
def put(l, v): l.append(v)
def h():
    d = {}
    fill(d)
    run(d["cmd"])  # bad
    l = []
    put(l, Q)
    run(l[0])  # bad
    m = []
    put(m, "ls")
    run(m[0])

#### early return in a helper
def pick(kind, value):
    if kind == "fixed":
        return "ls"
    return value
def h(): run(pick(request.args["k"], Q))  # bad

#### a function defined later
def h(): later(Q)
def later(x): run(x)  # bad

#### a function defined under a condition
import sys
if sys.platform == "win32":
    def go(x): run(x)  # bad
else:
    def go(x): run("ls " + x)  # bad
def h(): go(Q)

#### a parameter that is overwritten
def go(x):
    x = "ls"
    run(x)
def h(): go(Q)
"""
)


@pytest.mark.parametrize("title", PROGRAMS)
def test_exactly_the_marked_lines_are_flagged(title: str) -> None:
    missed, false_alarms = difference(PROGRAMS[title])
    assert (missed, false_alarms) == (set(), set())
