"""What the functions that stand in tokens show: `guard:FUNCTION:PARAMETER` becomes the kinds that it clears. Pure."""

from __future__ import annotations

from casemate.agents.audit.facts.summary import Function
from casemate.agents.audit.linking.names import Names
from casemate.agents.audit.vocabulary.lexicon import EVERYTHING

_Kinds = frozenset[str]


class Tokens:
    """Turns tokens into kinds; each is worked out once."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._known: dict[str, _Kinds] = {}

    def expanded(self, cleared: _Kinds) -> _Kinds:
        """Kinds, with tokens replaced by what their functions show."""
        tokens = [kind for kind in cleared if ":" in kind]
        return cleared.union(*(self._kinds(token) for token in tokens)) if tokens else cleared

    def _kinds(self, token: str) -> _Kinds:
        known = self._known.get(token)
        if known is None:
            self._known[token] = frozenset()  # a test that rests on itself shows nothing
            known = self._known[token] = self._shown(token)
        return known

    def _shown(self, token: str) -> _Kinds:
        what, _, rest = token.partition(":")
        name, _, at = rest.rpartition(":")
        if what == "fixed":
            return frozenset({EVERYTHING}) if self._names.is_fixed(name, at) else frozenset()
        shown = [self._by(function, what, at=at) for function in self._names.resolve(name)]
        return frozenset.intersection(*shown) if shown else frozenset()

    def _by(self, function: Function, what: str, *, at: str) -> _Kinds:
        parameter = at
        if at.isdigit():
            index = int(at) + (1 if function.method else 0)
            parameter = function.parameters[index] if index < len(function.parameters) else ""
        shown = function.guards if what == "guard" else function.ensures
        return self.expanded(shown.get(parameter, frozenset()))
