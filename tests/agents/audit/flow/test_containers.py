"""Data in containers: by key and index, nested, changed in place, in configuration objects."""

from __future__ import annotations

import pytest

from agents.audit.flow.programs import difference, programs

PROGRAMS = programs(
    r"""
#### dictionaries by key
def h():
    d = {"a": Q, "b": "ls"}
    run(d["a"])  # bad
    run(d["b"])
    run(d.get("a"))  # bad
    run(d.get("b", "x"))
    d["c"] = "ls"
    run(d["c"])
    d["b"] = d["a"]
    run(d["b"])  # bad
    d["a"] = "ls"
    run(d["a"])

#### pop setdefault and get with defaults
def h():
    d = {"a": Q, "b": "ls"}
    run(d.pop("b"))
    run(d.setdefault("a", "x"))  # bad
    run(d.setdefault("z", "x"))
    run(d.setdefault("y", Q))  # bad
    run(d["y"])  # bad
    run(d["z"])
    run(d.get("no", "ls"))
    run(d.get("no", Q))  # bad

#### update and union
def h():
    d = {"b": "ls"}
    d.update({"a": Q})
    d.update(c="ls")
    run(d["a"])  # bad
    run(d["b"])
    run(d["c"])
    e = {"x": "ls"} | {"y": Q}
    run(e["x"])
    run(e["y"])  # bad
    f = {"x": "ls"}
    f |= {"y": Q}
    run(f["x"])
    run(f["y"])  # bad
    g = {**d, "a": "ls"}
    run(g["a"])
    i = dict(a=Q, b="ls")
    run(i["a"])  # bad
    run(i["b"])
    k = dict([("a", Q), ("b", "ls")])
    run(k["a"])  # bad
    run(k["b"])
    l = dict({"a": Q}, a="ls")
    run(l["a"])

#### items values and keys
def h():
    d = {"a": Q, "b": "ls"}
    for v in d.values():
        run(v)  # bad
    for k, v in d.items():
        run(v)  # bad
        run(k)
    for k in d:
        run(k)
    for k in d.keys():
        run(k)
    e = {Q: "ls"}
    for k in e:
        run(k)  # bad
    for v in e.values():
        run(v)

#### a key that is only known at run time
def h():
    d = {"a": "ls", "b": "ps"}
    run(d[Q])
    run(d.get(Q))
    run(d.get(Q, "ls"))
    run(d.get(Q, Q))  # bad
    d[Q] = "x"
    run(d["a"])
    d["z"] = Q
    run(d[Q])  # bad

#### lists by index
def h():
    l = ["ls", Q, "ps"]
    run(l[0])
    run(l[1])  # bad
    run(l[-1])
    run(l[-2])  # bad
    l[1] = "x"
    run(l[1])

#### append insert pop remove
def h():
    l = []
    l.append("ls")
    l.append(Q)
    l.append("ps")
    run(l[0])
    run(l[1])  # bad
    l.pop(0)
    run(l[0])  # bad
    run(l[1])
    m = ["a"]
    m.insert(0, Q)
    run(m[0])  # bad
    run(m[1])
    m.reverse()
    run(m[1])  # bad
    run(m[0])
    n = ["a", Q]
    n.remove("a")
    run(n[0])  # bad
    o = ["a", Q]
    del o[1]
    run(o[0])
    p = ["a", Q, "b"]
    del p[0]
    run(p[0])  # bad
    run(p[1])
    r = [Q]
    r.clear()
    r.append("ls")
    run(r[0])

#### extend and slices
def h():
    l = ["ls"]
    l.extend([Q, "ps"])
    run(l[0])
    run(l[1])  # bad
    run(l[2])
    l += ["x"]
    run(l[3])
    run(l[1])  # bad
    m = l[2:]
    run(m[0])
    n = l[:2]
    run(n[1])  # bad
    run(n[0])
    run([Q, "ls"][::-1][0])
    run(list(reversed([Q, "ls"]))[0])
    run((["x"] + [Q])[1])  # bad
    run((["x"] + [Q])[0])
    run(" ".join([Q, "ls"][1:]))
    run(" ".join([Q, "ls"][:1]))  # bad

#### tuples and unpacking
def h():
    a, b = Q, "ls"
    run(a)  # bad
    run(b)
    a, b = b, a
    run(a)
    run(b)  # bad
    x, *rest = "ls", Q, "ps"
    run(x)
    run(rest[0])  # bad
    run(rest[1])
    *head, last = Q, "ls"
    run(last)
    run(head[0])  # bad
    (m, n), o = ("ls", Q), "ps"
    run(m)
    run(n)  # bad
    run(o)
    for p, q in [("ls", Q), ("ps", "x")]:
        run(p)
        run(q)  # bad
    t = [*["ls"], Q]
    run(t[0])
    run(t[1])  # bad
"""
)


@pytest.mark.parametrize("title", PROGRAMS)
def test_exactly_the_marked_lines_are_flagged(title: str) -> None:
    missed, false_alarms = difference(PROGRAMS[title])
    assert (missed, false_alarms) == (set(), set())
