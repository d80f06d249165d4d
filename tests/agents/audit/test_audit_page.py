"""The page about the audit tells every kind that there is; `make snapshots` renews its table."""

from __future__ import annotations

from pathlib import Path

import pytest

from casemate.agents.audit.rules import RULES

_PAGE = Path(__file__).parents[3] / "docs" / "audit.md"
_HEAD = "| rule | weakness | severity | what it says |\n|---|---|---|---|\n"


def _table() -> str:
    ordered = sorted(RULES.values(), key=lambda rule: (rule.severity.rank, rule.id))
    return "".join(
        f"| `{rule.id}` | {rule.cwe} {rule.title_en} | {rule.severity.value} | {rule.message_en} |\n"
        for rule in ordered
    )


def test_the_table_of_kinds_is_that_of_the_rules(pytestconfig: pytest.Config) -> None:
    before, head, after = _PAGE.read_text(encoding="utf-8").partition(_HEAD)
    assert head
    if pytestconfig.getoption("update_snapshots"):
        rest = after.partition("\n\n")[2]
        _PAGE.write_text(before + head + _table() + (f"\n{rest}" if rest else ""), encoding="utf-8")
        return
    assert after.partition("\n\n")[0].rstrip("\n") == _table().rstrip("\n"), "make snapshots renews the table"
