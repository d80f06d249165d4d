"""Functions as values: callbacks, tables of functions, partial application, lambdas, decorators."""

from __future__ import annotations

import pytest

from agents.audit.flow.programs import difference, programs

PROGRAMS = programs(
    r"""
#### nested functions and closures
def h():
    q = Q
    def inner():
        run(q)  # bad
    inner()
def i():
    q = Q
    q = "ls"
    def inner():
        run(q)
    inner()
def outer(cmd):
    def inner(): run(cmd)  # bad
    return inner
def j(): outer(Q)()

#### closure reads what is assigned after its definition
def h():
    cmd = "ls"
    def inner():
        run(cmd)  # bad
    cmd = Q
    inner()

#### nonlocal
def h():
    cmd = "ls"
    def change():
        nonlocal cmd
        cmd = Q
    change()
    run(cmd)  # bad

#### a nested function returns an argument of the outer
def h():
    q = Q
    def get(): return q
    def fixed(): return "ls"
    run(get())  # bad
    run(fixed())

#### lambdas
def h():
    f = lambda x: "ls " + x
    g = lambda x: "ls"
    run(f(Q))  # bad
    run(g(Q))
    run((lambda: Q)())  # bad
    go = lambda c: run(c)  # bad
    go(Q)
    stay = lambda c: run(c)
    stay("ls")

#### callbacks passed as arguments
def apply(f, v): f(v)
def go(v): run(v)  # bad
def stay(v): run("ls")
def h():
    apply(go, Q)
    apply(stay, Q)

#### a function kept in a variable
def go(v): run(v)  # bad
def stay(v): run(v)
def h():
    f = go
    f(Q)
    g = stay
    g("ls")

#### dispatch tables
def go(v): run(v)  # bad
def show(v): return v
def safe(v): run("ls")
ACTIONS = {"go": go, "show": show, "safe": safe}
def h():
    ACTIONS["go"](Q)
    run(ACTIONS["show"](Q))  # bad
    run(ACTIONS["show"]("ls"))
    ACTIONS[request.args["action"]]("ls")

#### dispatch by an unknown key
def go(v): run(v)  # bad
def stay(v): return v
def h():
    {"go": go, "stay": stay}.get(request.args["a"], stay)(Q)

#### partial
from functools import partial
def go(a, b): run(b)  # bad
def stay(a, b): run(b)
def h():
    partial(go, "x")(Q)
    f = partial(stay, Q)
    f("ls")

#### partial keeps its arguments
import functools
def go(a, b): run(a)  # bad
def h():
    f = functools.partial(go, Q)
    f("x")

#### map filter sorted
def tidy(x): return x.strip()
def drop(x): return "ls"
def h():
    for c in map(tidy, [Q]):
        run(c)  # bad
    for c in map(drop, [Q]):
        run(c)
    for c in filter(None, [Q]):
        run(c)  # bad
    for c in sorted([Q], key=len):
        run(c)  # bad
    for c in map(lambda v: "x", [Q]):
        run(c)

#### map with a function that is a sink
def go(v): run(v)  # bad
def h():
    list(map(go, [Q]))

#### own decorators that pass through
import functools
def logged(f):
    @functools.wraps(f)
    def inner(*args, **kwargs):
        return f(*args, **kwargs)
    return inner
@logged
def same(x): return x
@logged
def fixed(x): return "ls"
@logged
def go(x): run(x)  # bad
def h():
    run(same(Q))  # bad
    run(fixed(Q))
    go(Q)

#### decorators with arguments
def retry(times):
    def wrap(f):
        def inner(*a): return f(*a)
        return inner
    return wrap
@retry(3)
def go(x): run(x)  # bad
@retry(3)
def stay(x): run("ls")
def h():
    go(Q)
    stay(Q)

#### a conditional function
def clean(x): return "ls"
def same(x): return x
def h(flag):
    f = clean if flag else same
    run(f(Q))  # bad
"""
)


@pytest.mark.parametrize("title", PROGRAMS)
def test_exactly_the_marked_lines_are_flagged(title: str) -> None:
    missed, false_alarms = difference(PROGRAMS[title])
    assert (missed, false_alarms) == (set(), set())
