"""Loops, handlers, managers, generators, coroutines: where control leaves and comes back."""

from __future__ import annotations

import pytest

from agents.audit.flow.programs import difference, programs

PROGRAMS = programs(
    r"""
#### loops that carry
def h():
    a = b = c = "ls"
    for i in range(3):
        run(c)  # bad
        c = b
        b = a
        a = Q
def i():
    a = "ls"
    while True:
        run(a)
        break
        a = Q
def j():
    a = Q
    for x in ["b"]:
        a = x
    run(a)  # bad
def k():
    while True:
        a = Q
        if a:
            break
    run(a)  # bad
def l():
    for x in ["a"]:
        a = "ls"
        break
    else:
        a = Q
    run(a)  # bad

#### try except else finally
def h():
    q = Q
    try:
        q = "ls"
        os.stat("x")
    except OSError:
        run(q)
    run(q)
def i():
    q = "ls"
    try:
        q = Q
        os.stat("x")
    except OSError:
        run(q)  # bad
def j():
    q = "ls"
    try:
        os.stat("x")
    except OSError:
        q = Q
    else:
        q = "ps"
    finally:
        run(q)  # bad
def k():
    try:
        n = int(Q)
    except ValueError as e:
        print(e)
        return
    run(str(n))
def l():
    q = Q
    try:
        pass
    finally:
        q = "ls"
    run(q)
def m():
    q = Q
    try:
        pass
    except Exception:
        run(q)

#### with
def h():
    with open("x") as f:
        run(Q)  # bad
        run("ls")
from contextlib import contextmanager, nullcontext, suppress
@contextmanager
def given(x): yield x
@contextmanager
def fixed(x): yield "ls"
class Manager:
    def __init__(self, x): self.x = x
    def __enter__(self): return self
    def __exit__(self, *a): pass
class Giver:
    def __init__(self, x): self.x = x
    def __enter__(self): return self.x
    def __exit__(self, *a): pass
def i():
    with given(Q) as c:
        run(c)  # bad
    with fixed(Q) as c:
        run(c)
    with Manager(Q) as m:
        run(m.x)  # bad
    with Giver(Q) as c:
        run(c)  # bad
    with nullcontext(Q) as c:
        run(c)  # bad
    with suppress(ValueError):
        q = "ls"
    run(q)

#### walrus
def h():
    if (q := Q):
        run(q)  # bad
    while (line := "ls"):
        run(line)
        break
    if (n := len(Q)) > 3:
        run(str(n))
    [y := Q, y]
    run(y)  # bad

#### generators
def gen(x):
    yield "ls"
    yield x
def gen_fixed(x): yield "ls"
def outer(x): yield from gen(x)
def h():
    for c in gen(Q):
        run(c)  # bad
    for c in gen_fixed(Q):
        run(c)
    for c in outer(Q):
        run(c)  # bad
    run(next(gen(Q)))  # bad
    run(list(gen(Q))[1])  # bad
    run(next(iter([Q])))  # bad
    run(next((x for x in ["a", "b"] if x == Q), "ls"))

#### async
import asyncio
async def get(): return Q
async def fixed(): return "ls"
async def agen():
    yield Q
async def h():
    run(await get())  # bad
    run(await fixed())
    a, b = await asyncio.gather(get(), fixed())
    run(a)  # bad
    run(b)
    async for x in agen():
        run(x)  # bad
    run([x async for x in agen()][0])  # bad
    t = asyncio.create_task(get())
    run(await t)  # bad
def i():
    run(asyncio.run(get()))  # bad

#### threads and pools
import threading
from concurrent.futures import ThreadPoolExecutor
def go(x): run(x)  # bad
def go2(x): run(x)  # bad
def stay(x): run(x)
def h():
    threading.Thread(target=go, args=(Q,)).start()
    threading.Thread(target=stay, args=("ls",)).start()
    with ThreadPoolExecutor() as pool:
        pool.submit(go2, Q)

#### assertions
def h():
    q = Q
    assert q in ("a", "b")
    run(q)
def i():
    q = Q
    assert q
    run(q)  # bad
"""
)


@pytest.mark.parametrize("title", PROGRAMS)
def test_exactly_the_marked_lines_are_flagged(title: str) -> None:
    missed, false_alarms = difference(PROGRAMS[title])
    assert (missed, false_alarms) == (set(), set())
