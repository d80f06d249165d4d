"""What the rules say about a finding, in the reader's language."""

from __future__ import annotations

from dataclasses import dataclass

from casemate.agents.audit.rules import RULES
from casemate.agents.phrases import Language
from casemate.finding import Finding


@dataclass(frozen=True, slots=True)
class Wording:
    """A finding in words: the weakness's short `title`, what is wrong, and `guidance` on what to do (may be empty)."""

    title: str
    message: str
    guidance: str


def wording(finding: Finding, language: Language) -> Wording:
    """The words of the finding's rule; for a rule that is not ours, the finding's own."""
    rule = RULES.get(finding.rule)
    if rule is None:
        return Wording(finding.name, finding.message, "")
    return Wording(rule.title(language), rule.message(language), rule.guidance(language))
