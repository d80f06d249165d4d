"""Data through classes: inheritance, overrides, properties, special methods, objects in objects."""

from __future__ import annotations

import pytest

from agents.audit.flow.programs import difference, programs

PROGRAMS = programs(
    r"""
#### properties
class Box:
    def __init__(self, v): self._v = v
    @property
    def cmd(self): return self._v
    @property
    def fixed(self): return "ls"
def h():
    b = Box(Q)
    run(b.cmd)  # bad
    run(b.fixed)

#### cached property
from functools import cached_property
class Box:
    def __init__(self, v): self._v = v
    @cached_property
    def cmd(self): return "ls " + self._v
def h(): run(Box(Q).cmd)  # bad

#### inheritance
class Base:
    def __init__(self, v): self.v = v
    def go(self): run(self.v)  # bad
class Child(Base):
    pass
def h(): Child(Q).go()

#### super
class Base:
    def __init__(self, v, w):
        self.v = v
        self.w = w
class Child(Base):
    def __init__(self, v, w): super().__init__(v, w)
    def go(self): run(self.v)  # bad
    def stay(self): run(self.w)
def h():
    c = Child(Q, "ls")
    c.go()
    c.stay()

#### overrides
class Base:
    def cmd(self, x): return x
class Child(Base):
    def cmd(self, x): return "ls"
def h():
    run(Child().cmd(Q))
    run(Base().cmd(Q))  # bad

#### an override that calls its base
class Base:
    def go(self, x): run(x)  # bad
class Child(Base):
    def go(self, x): super().go("-" + x)
def h(): Child().go(Q)

#### abstract bases with several implementations
from abc import ABC, abstractmethod
class Runner(ABC):
    @abstractmethod
    def go(self, x): ...
class Shell(Runner):
    def go(self, x): run(x)  # bad
class Quiet(Runner):
    def go(self, x): return None
def start(r: Runner, x): r.go(x)
def h(): start(Shell(), Q)

#### template method in the base
class Base:
    def handle(self): self.work(Q)
    def work(self, x): raise NotImplementedError
class Child(Base):
    def work(self, x): run(x)  # bad

#### a factory
class Shell:
    def go(self, x): run(x)  # bad
class Quiet:
    def go(self, x): return x
def make(kind):
    if kind == "shell":
        return Shell()
    return Quiet()
def h(): make(request.args["k"]).go(Q)

#### static and class methods
class Tool:
    @staticmethod
    def go(x): run(x)  # bad
    @classmethod
    def make(cls, x): return cls(x)
    def __init__(self, x): self.x = x
    def use(self): run(self.x)  # bad
def h():
    Tool.go(Q)
    Tool.make(Q).use()

#### call and getitem
class Runner:
    def __init__(self, v): self.v = v
    def __call__(self, x): run(x)  # bad
    def __getitem__(self, key): return self.v
    def __str__(self): return self.v
def h():
    r = Runner(Q)
    r(Q)
    run(r["x"])  # bad
    run(str(r))  # bad
    run(f"ls {r}")  # bad

#### objects inside objects
class Conf:
    def __init__(self, cmd): self.cmd = cmd
class App:
    def __init__(self, conf): self.conf = conf
    def go(self): run(self.conf.cmd)  # bad
def h():
    App(Conf(Q)).go()

#### objects made by an object
class Db:
    def q(self, x): run(x)  # bad
class App:
    def __init__(self): self.db = Db()
    def go(self, x): self.db.q(x)
def h(): App().go(Q)

#### post init
from dataclasses import dataclass
@dataclass
class Job:
    raw: str
    def __post_init__(self): self.cmd = "ls " + self.raw
def h(): run(Job(Q).cmd)  # bad

#### typed parameters
class Repo:
    def find(self, x): run(x)  # bad
class Service:
    def __init__(self, repo: Repo) -> None: self.repo = repo
    def use(self, x): self.repo.find(x)
class Other:
    def find(self, x): return x
def h(s: Service): s.use(Q)
"""
)


@pytest.mark.parametrize("title", PROGRAMS)
def test_exactly_the_marked_lines_are_flagged(title: str) -> None:
    missed, false_alarms = difference(PROGRAMS[title])
    assert (missed, false_alarms) == (set(), set())
