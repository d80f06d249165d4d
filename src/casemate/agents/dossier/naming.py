"""How findings and their places are called in a report."""

from __future__ import annotations

from casemate.agents.audit.wording import wording
from casemate.agents.dossier.words import WORDS
from casemate.agents.phrases import Language
from casemate.finding import Finding, Location


def kind(finding: Finding, language: Language) -> str:
    """The weakness by its id and short name."""
    return f"{finding.cwe} {wording(finding, language).title}"


def full_kind(finding: Finding, language: Language) -> str:
    """The weakness by its id and official name; a Chinese reader gets ours first."""
    if language == "en":
        return f"{finding.cwe} {finding.name}"
    title = wording(finding, language).title
    return f"{finding.cwe} {title}" + (f"（{finding.name}）" if finding.name != title else "")


def place(at: Location, language: Language) -> str:
    """Where it is: path and line; in a notebook the cell, as its author counts."""
    if at.cell is not None:
        return f"{at.path} ({WORDS[language].cell.format(number=at.cell.number, line=at.cell.line)})"
    return f"{at.path}:{at.line}" if at.line > 0 else at.path


def anchor(number: int) -> str:
    """The name of a finding's section."""
    return f"finding-{number}"


def shortened(items: list[str], most: int, *, language: Language) -> str:
    """The first items in one line, and how many more there are."""
    rest = len(items) - most
    more = (WORDS[language].more.format(count=rest),) if rest > 0 else ()
    separator = "、" if language == "zh" else ", "
    return separator.join((*items[:most], *more))
