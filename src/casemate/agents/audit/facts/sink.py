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

    `name` is the access path of what is called, `function` its value, `receiver` what it is a method of.
    """

    name: str
    node: ast.Call
    function: Value
    receiver: Value
    args: tuple[Value, ...]
    keywords: Mapping[str, Value]

    def argument(self, position: int, keyword: str = "") -> Value:
        """An argument by position or keyword; NOTHING where it is not given."""
        if keyword and keyword in self.keywords:
            return self.keywords[keyword]
        return self.args[position] if 0 <= position < len(self.args) else NOTHING

    def is_set(self, keyword: str) -> bool:
        """Whether a keyword is given and not a false constant."""
        value = self.keywords.get(keyword)
        return value is not None and (bool(value.constant) if known(value) else True)


Condition = Callable[[Invocation], bool]


@dataclass(frozen=True, slots=True)
class Sink:
    """One way to do harm. `arguments` are positions or keywords that must not be untrusted; -1 is the receiver."""

    rule: str
    kind: str
    arguments: tuple[int | str, ...] = (0,)
    when: Condition = lambda _: True
    confidence: Confidence = Confidence.HIGH


def known(value: Value) -> bool:
    """Whether the constant of a value is known, and a plain one."""
    return isinstance(value.constant, bool | int | str | bytes | float | None)
