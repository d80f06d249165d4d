"""The rules' own manuals as readers of SARIF get them, in either language."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType

from casemate.agents.audit.rules import RULES, Rule
from casemate.agents.phrases import Language
from casemate.finding import Finding
from casemate.report.sarif import Manual

_TITLES: dict[Language, tuple[str, str, str, str]] = {
    "en": ("What to do", "Flagged", "Not flagged", "References"),
    "zh": ("处理建议", "会被报告的写法", "不会被报告的写法", "参考资料"),
}


def manuals(findings: Iterable[Finding], language: Language) -> MappingProxyType[str, Manual]:
    """The manual of every rule of ours that made one of the findings, by rule id."""
    ids = sorted({finding.rule for finding in findings} & RULES.keys())
    return MappingProxyType({id_: _manual(RULES[id_], language) for id_ in ids})


def _manual(rule: Rule, language: Language) -> Manual:
    do, bad, good, read = _TITLES[language]
    purpose = (rule.purpose,) if language == "en" else ()
    parts = (
        f"# {rule.cwe} {rule.title(language)}",
        rule.message(language),
        *purpose,
        f"## {do}",
        rule.guidance(language),
        f"## {bad}",
        _fenced(rule.bad),
        f"## {good}",
        _fenced(rule.good),
        f"## {read}",
        "\n".join(f"- <{address}>" for address in rule.references),
    )
    return Manual(rule.title(language), rule.message(language), "\n\n".join(parts) + "\n")


def _fenced(code: str) -> str:
    return f"```python\n{code.strip()}\n```"
