"""Containers in containers, in loops, in globals; comprehensions, pairs, configuration objects."""

from __future__ import annotations

import pytest

from agents.audit.flow.programs import difference, programs

PROGRAMS = programs(
    r"""
#### deques and queues
from collections import deque, defaultdict, OrderedDict
import queue
def h():
    d = deque()
    d.append(Q)
    d.appendleft("ls")
    run(d[0])
    run(d[1])  # bad
    run(d.popleft())
    run(d.pop())  # bad
    q = queue.Queue()
    q.put(Q)
    run(q.get())  # bad
    e = defaultdict(list)
    e["a"].append(Q)
    e["b"].append("ls")
    run(e["a"][0])  # bad
    run(e["b"][0])
    o = OrderedDict()
    o["a"] = Q
    o["b"] = "ls"
    run(o["a"])  # bad
    run(o["b"])

#### nested
def h():
    d = {"a": {"x": Q, "y": "ls"}, "l": ["ls", Q]}
    run(d["a"]["x"])  # bad
    run(d["a"]["y"])
    run(d["l"][0])
    run(d["l"][1])  # bad
    d["a"]["x"] = "ls"
    run(d["a"]["x"])
    d["b"] = {}
    d["b"]["z"] = Q
    run(d["b"]["z"])  # bad
    run(d["a"]["y"])
    d["l"].append("ps")
    run(d["l"][2])
    run(d.get("a").get("y"))

#### aliases of a container
def h():
    a = {}
    b = a
    b["x"] = Q
    run(a["x"])  # bad
    c = a.copy()
    c["x"] = "ls"
    run(c["x"])
    run(a["x"])  # bad

#### sets
def h():
    s = {"ls"}
    s.add(Q)
    for x in s:
        run(x)  # bad
    run({"a", "b"}.pop())

#### comprehensions of all four sorts
def h():
    run([x for x in [Q]][0])  # bad
    run(next(x for x in [Q]))  # bad
    run(list({x for x in [Q]})[0])  # bad
    run({k: v for k, v in [("a", Q)]}["a"])  # bad
    run("".join("x" for x in [Q]))
    run("".join(c for c in Q if c.isalnum()))
    run("".join(c for c in Q if c != "x"))  # bad
    run(" ".join(str(int(x)) for x in Q.split(",")))
    run([x for x in [Q] if x in ("a", "b")][0])
    run([y for x in [[Q]] for y in x][0])  # bad

#### enumerate zip reversed
def h():
    for i, x in enumerate(["ls", Q]):
        run(x)  # bad
        run(str(i))
    for a, b in zip([Q], ["ls"]):
        run(a)  # bad
        run(b)
    for x in reversed(["ls", Q]):
        run(x)  # bad
    for i in range(len(Q)):
        run(str(i))

#### configparser
import configparser
def h():
    c = configparser.ConfigParser()
    c.add_section("s")
    c.set("s", "a", Q)
    c.set("s", "b", "ls")
    run(c.get("s", "a"))  # bad
    run(c.get("s", "b"))
    run(c["s"]["a"])  # bad
    run(c["s"]["b"])
    d = configparser.ConfigParser()
    d["s"] = {"a": Q, "b": "ls"}
    run(d["s"]["a"])  # bad
    run(d["s"]["b"])
    run(d.get("s", "b"))
    e = configparser.ConfigParser()
    e.read_dict({"s": {"a": Q, "b": "ls"}})
    run(e.get("s", "a"))  # bad
    run(e.get("s", "b"))
    run(e.get("s", "c", fallback="ls"))
    f = configparser.ConfigParser()
    f["s"] = {}
    f["s"]["a"] = Q
    f["s"]["b"] = "ls"
    run(f["s"].get("a"))  # bad
    run(f["s"].get("b"))
    run(f.getint("s", "a"))

#### environment
import os
def h():
    os.environ["A"] = Q
    os.environ["B"] = "ls"
    run(os.environ["A"])  # bad
    run(os.environ["B"])
    run(os.environ.get("A"))  # bad
    run(os.environ.get("B"))
    os.putenv("C", "x")

#### lists grown in loops
def h():
    parts = ["ls"]
    for name in ("a", "b"):
        parts.append(request.args[name])
    run(" ".join(parts))  # bad
    other = ["ls"]
    for name in ("a", "b"):
        other.append(name)
    run(" ".join(other))

#### large literals keep their members
def h():
    table = {f"k{i}": "v" for i in range(75)}
    table["bad"] = Q
    run(table["k70"])
    run(table["bad"])  # bad

#### containers in globals
TABLE = {"a": "ls", "b": "ps"}
CACHE = {}
LIST = []
def put():
    CACHE["x"] = Q
    LIST.append(Q)
def get():
    run(CACHE["x"])  # bad
    run(LIST[0])  # bad
    run(TABLE["a"])
    run(TABLE[Q])

#### max min and sorted of fixed lists
def h():
    run(max(["a", "b"], key=lambda x: x == Q))
    run(sorted([Q, "b"])[0])  # bad
    run(str(len(Q)))
    run(str(sum(map(int, Q.split()))))
    run(str(Q.count("a")))
    run(str(Q.find("a")))
"""
)


@pytest.mark.parametrize("title", PROGRAMS)
def test_exactly_the_marked_lines_are_flagged(title: str) -> None:
    missed, false_alarms = difference(PROGRAMS[title])
    assert (missed, false_alarms) == (set(), set())
