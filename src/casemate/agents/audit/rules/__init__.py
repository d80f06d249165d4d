"""Every rule of the audit, by its id."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from casemate.agents.audit.rules import (
    access,
    browsers,
    cryptography,
    files,
    injection,
    keys,
    messages,
    queries,
    resources,
    switches,
    tokens,
    web,
)
from casemate.agents.audit.rules.rule import Rule
from casemate.agents.phrases import Language

__all__ = ["RULES", "Rule", "message"]

_FAMILIES = (
    queries.RULES,
    injection.RULES,
    files.RULES,
    web.RULES,
    messages.RULES,
    cryptography.RULES,
    keys.RULES,
    tokens.RULES,
    switches.RULES,
    browsers.RULES,
    access.RULES,
    resources.RULES,
)
RULES: Mapping[str, Rule] = MappingProxyType({rule.id: rule for family in _FAMILIES for rule in family})


def message(rule_id: str, language: Language = "en") -> str:
    """What a rule says where it finds something, in a language.

    Raises:
        KeyError: there is no such rule.
    """
    return RULES[rule_id].message(language)
