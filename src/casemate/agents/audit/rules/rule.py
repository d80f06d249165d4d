"""What a rule is: its own manual, in both languages, with examples that the tests run."""

from __future__ import annotations

from dataclasses import dataclass

from casemate.agents.phrases import Language
from casemate.finding import Severity

_CHEAT_SHEETS = "https://cheatsheetseries.owasp.org/cheatsheets/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One kind of weakness.

    `cwe` is an id that MITRE allows for mapping and `name` its official name; `message` says what is wrong where it is
    found, `fix` what to do; `bad` is flagged and `good`, its repaired twin, is not. `blind` says what the rule does not
    see, and where it keeps silent on purpose.
    """

    id: str
    cwe: str
    name: str
    severity: Severity
    title_en: str
    title_zh: str
    message_en: str
    message_zh: str
    fix_en: str
    fix_zh: str
    purpose: str
    bad: str
    good: str
    sheet: str = ""
    blind: str = ""

    @property
    def references(self) -> tuple[str, ...]:
        """Official addresses: the CWE entry, and OWASP's cheat sheet where there is one."""
        number = self.cwe.removeprefix("CWE-")
        entry = f"https://cwe.mitre.org/data/definitions/{number}.html"
        return (entry, f"{_CHEAT_SHEETS}{self.sheet}.html") if self.sheet else (entry,)

    def message(self, language: Language) -> str:
        """What is wrong, in a language."""
        return self.message_zh if language == "zh" else self.message_en

    def title(self, language: Language) -> str:
        """The rule's short name, in a language."""
        return self.title_zh if language == "zh" else self.title_en

    def guidance(self, language: Language) -> str:
        """What to do, in a language."""
        return self.fix_zh if language == "zh" else self.fix_en
