"""Branches: dead code, constant tests, loops, handlers, what is overwritten."""

from __future__ import annotations

import pytest

from agents.audit.flow.programs import difference, programs

PROGRAMS = programs(
    r"""
#### dead branches
def h():
    q = Q
    if False:
        run(q)
    if True:
        run(q)  # bad
    else:
        run(q)
    if 0 > 1:
        run(q)
    while False:
        run(q)
    if not True:
        run(q)
    for x in ():
        run(q)
    for x in []:
        run(q)

#### after return and raise
def a():
    return 1
    run(Q)
def b():
    raise ValueError(Q)
    run(Q)
def c():
    abort(404)
    run(Q)
import sys
def d():
    sys.exit(1)
    run(Q)
def e():
    while True:
        pass
    run(Q)
def f():
    if Q:
        return 1
    else:
        return 2
    run(Q)
def g():
    for x in [1]:
        continue
        run(Q)
def i():
    try:
        return 1
    except ValueError:
        return 2
    run(Q)

#### a constant that is chosen
def a():
    n = 106
    if (7 * 42) - n > 200:
        q = Q
    else:
        q = "ls"
    run(q)
def b():
    n = 86
    if (7 * 42) - n > 200:
        q = Q
    else:
        q = "ls"
    run(q)  # bad
def c():
    n = 1
    n += 2
    q = "ls"
    if n == 4:
        q = Q
    run(q)
def d(flag):
    q = "ls"
    if flag:
        q = Q
    run(q)  # bad

#### match on a constant
def a():
    guess = "ABC"[2]
    match guess:
        case "A":
            q = Q
        case "B":
            q = Q
        case "C" | "D":
            q = "ls"
        case _:
            q = "ps"
    run(q)
def b():
    guess = "ABC"[0]
    match guess:
        case "A" | "D":
            q = Q
        case _:
            q = "ls"
    run(q)  # bad
def c():
    match Q:
        case "a" | "b" as name:
            run(name)
        case other:
            run(other)  # bad
def d():
    q = Q
    match q:
        case "a":
            run(q)
        case _:
            run(q)  # bad

#### match on a structure
def h():
    match [Q, "ls"]:
        case [a, b]:
            run(a)  # bad
            run(b)
    match {"x": Q, "y": "ls"}:
        case {"x": a, "y": b}:
            run(a)  # bad
            run(b)
    match ("go", Q):
        case ("go", x):
            run(x)  # bad
class P:
    __match_args__ = ("a",)
    def __init__(self, a): self.a = a
def i():
    match P(Q):
        case P(a=v):
            run(v)  # bad
def j():
    q = Q
    match q:
        case str() if q.isdigit():
            run(q)
        case int(n):
            run(str(n))
        case x:
            run(x)  # bad

#### overwritten
def h():
    q = Q
    q = "ls"
    run(q)
def i():
    q = "ls"
    q = Q
    run(q)  # bad
def j(flag):
    q = Q
    if flag:
        q = "ls"
    run(q)  # bad
def k(flag):
    q = Q
    if flag:
        q = "ls"
    else:
        q = "ps"
    run(q)
def l():
    q = Q
    del q
    q = "ls"
    run(q)

#### a ternary and boolean operators
def h():
    run(Q or "ls")  # bad
    run("ls" or Q)
    run("" or Q)  # bad
    run(Q and "ls")
    run(None or "ls")
    x = None
    run(x or Q)  # bad
"""
)


@pytest.mark.parametrize("title", PROGRAMS)
def test_exactly_the_marked_lines_are_flagged(title: str) -> None:
    missed, false_alarms = difference(PROGRAMS[title])
    assert (missed, false_alarms) == (set(), set())
