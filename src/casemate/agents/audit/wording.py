"""What the rules say about a finding, in the reader's language."""

from __future__ import annotations

from dataclasses import dataclass

from casemate.agents.audit.javascript.advice import advice
from casemate.agents.audit.rules import RULES
from casemate.agents.phrases import Language
from casemate.finding import Finding
from casemate.knowledge.curated.tables import names_zh


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
        return Wording(_name(finding, language), finding.message, "")
    guidance = advice(finding.rule, finding.location.path, language=language) or rule.guidance(language)
    return Wording(rule.title(language), rule.message(language), guidance)


def _name(finding: Finding, language: Language) -> str:
    return names_zh().get(finding.cwe, finding.name) if language == "zh" else finding.name
