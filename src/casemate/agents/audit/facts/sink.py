"""A call as the analysis sees it, and what a sink is. Pure values."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from casemate.agents.audit.facts.values import NOTHING, Value
from casemate.finding import Confidence


@dataclass(frozen=True, slots=True)
class Invocation:
    """A call with its values.

    `name` is the access path of what is called, `function` its value, `receiver` what it is a method of. Of a class of
    the same file, `bases` are the bases and `ours` says that it inherits nothing; `sends` is the content type that the
    answer was given before, if known.
    """

    name: str
    node: ast.Call
    function: Value
    receiver: Value
    args: tuple[Value, ...]
    keywords: Mapping[str, Value]
    bases: tuple[str, ...] = ()
    ours: bool = False
    sends: str = ""

    def argument(self, position: int, keyword: str = "") -> Value:
        """An argument by position or keyword; NOTHING where it is not given."""
        if keyword and keyword in self.keywords:
            return self.keywords[keyword]
        return self.args[position] if 0 <= position < len(self.args) else NOTHING

    def written(self, position: int, *keywords: str) -> ast.expr | None:
        """The expression of an argument, by one of its keywords or by position; None where it is not given."""
        for given in self.node.keywords:
            if given.arg in keywords:
                return given.value
        return self.node.args[position] if 0 <= position < len(self.node.args) else None

    def is_set(self, keyword: str) -> bool:
        """Whether a keyword is given and not a false constant."""
        value = self.keywords.get(keyword)
        return value is not None and (bool(value.constant) if known(value) else True)


Condition = Callable[[Invocation], bool]
Reach = Callable[[Invocation], Value]


@dataclass(frozen=True, slots=True)
class Sink:
    """One way to do harm. `arguments` are positions or keywords that must not be untrusted; -1 is the receiver.

    Where `reach` is given it finds what matters instead. What a sink gives back is harmless for its kind (it was told
    once), unless it does not end the flow: what lies in an archive is not the archive's path.
    """

    rule: str
    kind: str
    arguments: tuple[int | str, ...] = (0,)
    when: Condition = lambda _: True
    confidence: Confidence = Confidence.HIGH
    reach: Reach | None = None
    ends: bool = True


def known(value: Value) -> bool:
    """Whether the constant of a value is known, and a plain one."""
    return isinstance(value.constant, bool | int | str | bytes | float | None)
