"""What the audit did not look at, by reason, and what became of a baseline's findings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized

from casemate.agents.audit.notes import told
from casemate.agents.audit.rules import RULES
from casemate.agents.dossier.naming import shortened
from casemate.agents.dossier.words import WORDS
from casemate.agents.phrases import Language
from casemate.finding import AuditResult, Ledger
from casemate.report.document import Block, Fold, Paragraph, Section, Table

_NAMED = 3
"""Files that stand for all that share a reason; JSON names every one."""
_MOST_ROWS = 200


def unread(ledger: Ledger, language: Language) -> Section:
    """Files that failed, each, and files that were skipped, by reason; then what is remarkable of those analysed."""
    words = WORDS[language]
    blocks: list[Block] = []
    if ledger.failed:
        rows = [(file.path, told(file.reason, language)) for file in ledger.failed]
        blocks += [Paragraph(_counted(words.failed, rows, language=language)), _cut(rows, language)]
    if ledger.skipped:
        table = _by_reason(((file.path, told(file.reason, language)) for file in ledger.skipped), language)
        blocks.append(Fold(_counted(words.skipped, ledger.skipped, language=language), (table,)))
    blocks.append(Paragraph(words.coverage_note if blocks else words.everything_looked_at))
    if ledger.remarks:
        remarks = _by_reason(((file.path, told(file.text, language)) for file in ledger.remarks), language)
        blocks.append(Fold(_counted(words.remarks, ledger.remarks, language=language), (remarks,)))
    return Section(words.coverage, tuple(blocks), anchor="coverage")


def gone(result: AuditResult, language: Language) -> Section | None:
    """The baseline's findings that are there no more."""
    if result.trend is None or not result.trend.gone:
        return None
    words = WORDS[language]
    rows = [(_rule(row.rule, language), row.path) for row in result.trend.gone]
    table = _cut(rows, language, header=(words.rule, words.file))
    return Section(f"{words.gone} ({len(rows)})", (Paragraph(words.gone_note), table))


def _rule(name: str, language: Language) -> str:
    return RULES[name].title(language) if name in RULES else name


def _by_reason(files: Iterable[tuple[str, str]], language: Language) -> Table:
    words = WORDS[language]
    reasons: dict[str, list[str]] = {}
    for path, reason in files:
        reasons.setdefault(reason, []).append(path)
    ordered = sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0]))
    rows = [(reason, str(len(paths)), shortened(paths, _NAMED, language=language)) for reason, paths in ordered]
    return _cut(rows, language, header=(words.reason, words.total, words.first_files))


def _cut(rows: Sequence[tuple[str, ...]], language: Language, *, header: tuple[str, ...] = ()) -> Table:
    words = WORDS[language]
    header = header or (words.file, words.reason)
    rest = len(rows) - _MOST_ROWS
    more = ((words.more.format(count=rest), *[""] * (len(header) - 1)),) if rest > 0 else ()
    return Table(header, (*rows[:_MOST_ROWS], *more))


def _counted(title: str, items: Sized, *, language: Language) -> str:
    return f"{title}（{len(items)}）" if language == "zh" else f"{title} ({len(items)})"
