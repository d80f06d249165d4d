"""The first page: a verdict in one sentence, what to do first, and where the risk lies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from casemate.agents.audit.notes import told
from casemate.agents.audit.wording import wording
from casemate.agents.dossier.naming import anchor, kind, place
from casemate.agents.dossier.words import WORDS
from casemate.agents.phrases import PHRASES, Language
from casemate.finding import AuditResult, Finding, Severity
from casemate.report.document import Block, Figure, Figures, Paragraph, Section, Step, Steps, Table, Verdict

_FIRST = 5
_MOST_FOLDERS = 12
_FOLDER_DEPTH = 2
"""Folders are told apart by so many parts of their path."""


def verdicts(result: AuditResult, language: Language) -> tuple[Verdict, ...]:
    """The one sentence, and where only a part was asked for, which."""
    words, limited = WORDS[language], result.ledger.limited
    limits = (Verdict("note", words.limited.format(limits=told(limited, language))),) if limited else ()
    return (_verdict(result, language), *limits)


def summary(result: AuditResult, language: Language) -> Section:
    """The figures of the audit, and its trend where there is a baseline."""
    words, ledger, trend = WORDS[language], result.ledger, result.trend
    model = " ".join(filter(None, (result.model.name, told(result.model.note, language))))
    answer = words.yes if result.honoured else words.no
    facts = [
        (words.analysed, str(ledger.analysed)),
        (words.searched, str(ledger.searched) if ledger.searched else ""),
        (words.skipped, str(len(ledger.skipped))),
        (words.failed, str(len(ledger.failed))),
        (words.suppressed_count, words.honoured.format(count=result.marked, answer=answer)),
        (PHRASES[language].model, model or PHRASES[language].no_model),
    ]
    if trend is not None:
        counts = words.trend_counts.format(new=len(result.open), known=len(result.known), gone=len(trend.gone))
        unseen = words.unseen.format(count=trend.unseen) if trend.unseen else ""
        facts.append((words.trend, counts + unseen))
    figures = tuple(Figure(label, value) for label, value in facts if value)
    return Section(words.summary, (Figures(figures),), anchor="summary")


def first_steps(findings: tuple[Finding, ...], language: Language) -> Section | None:
    """The few repairs to begin with: a kind of weakness in a file each, the worst and surest first."""
    if not findings:
        return None
    groups: dict[tuple[str, str], list[tuple[int, Finding]]] = {}
    for number, finding in enumerate(findings, start=1):
        groups.setdefault((finding.rule, finding.location.path), []).append((number, finding))
    ordered = sorted(groups.values(), key=lambda group: (_urgency(group[0][1]), -len(group)))
    steps = tuple(_first_step(group, language) for group in ordered[:_FIRST])
    return Section(WORDS[language].first, (Steps(steps),), anchor="first")


def tables(findings: tuple[Finding, ...], language: Language) -> Section | None:
    """How many there are by severity, kind and folder."""
    if not findings:
        return None
    words = WORDS[language]
    parts = (
        (words.by_severity, _by_severity(findings, language)),
        (words.by_kind, _by_kind(findings, language)),
        (words.by_folder, _by_folder(findings, language)),
    )
    blocks: list[Block] = []
    for title, table in parts:
        blocks += [Paragraph(title), table]
    return Section(words.overview, tuple(blocks), anchor="overview")


def _verdict(result: AuditResult, language: Language) -> Verdict:
    words, ledger, found = WORDS[language], result.ledger, result.open
    files = ledger.analysed + len(ledger.failed)
    numbers = {"open": len(found), "analysed": ledger.analysed, "failed": len(ledger.failed), "files": files}
    if not ledger.complete:
        if not ledger.failed:
            return Verdict("warn", words.nothing_analysed)
        return Verdict("warn", (words.incomplete if found else words.incomplete_clean).format(**numbers))
    if found:
        worst = PHRASES[language].severity[min(found, key=lambda finding: finding.severity.rank).severity]
        return Verdict("bad", words.found.format(**numbers, worst=words.worst.format(severity=worst)))
    if result.findings:
        return Verdict("good", words.clean_but.format(**numbers, hidden=len(result.findings)))
    return Verdict("good", words.clean.format(**numbers))


def _urgency(finding: Finding) -> tuple[int, bool]:
    return finding.severity.rank, not finding.flow


def _first_step(group: list[tuple[int, Finding]], language: Language) -> Step:
    words, (number, finding) = WORDS[language], group[0]
    said = wording(finding, language)
    note = words.first_step.format(
        title=said.title,
        severity=PHRASES[language].severity[finding.severity],
        count=words.place_count.format(count=len(group)),
    )
    told_too = PHRASES[language].colon.join(filter(None, (note, said.guidance or said.message)))
    return Step(place(finding.location, language), told_too, target=anchor(number))


def _by_severity(findings: tuple[Finding, ...], language: Language) -> Table:
    phrases, words = PHRASES[language], WORDS[language]
    counts = Counter(finding.severity for finding in findings)
    rows = tuple((phrases.severity[severity], str(counts[severity])) for severity in Severity if counts[severity])
    return Table((phrases.severity_title, phrases.count), (*rows, (words.total, str(len(findings)))))


def _by_kind(findings: tuple[Finding, ...], language: Language) -> Table:
    phrases = PHRASES[language]
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.rule, []).append(finding)
    ordered = sorted(groups.values(), key=lambda same: (_worst(same).rank, -len(same), same[0].cwe, same[0].rule))
    rows = tuple((kind(same[0], language), phrases.severity[_worst(same)], str(len(same))) for same in ordered)
    return Table((phrases.kind, phrases.severity_title, phrases.count), rows)


def _by_folder(findings: tuple[Finding, ...], language: Language) -> Table:
    phrases, words = PHRASES[language], WORDS[language]
    folders: dict[str, Counter[Severity]] = {}
    for finding in findings:
        folders.setdefault(_folder(finding.location.path), Counter())[finding.severity] += 1
    ordered = sorted(folders.items(), key=lambda item: ([-item[1][severity] for severity in Severity], item[0]))
    shown = [severity for severity in Severity if any(counts[severity] for counts in folders.values())]
    rows = [_row(folder or words.top_folder, counts, shown=shown) for folder, counts in ordered[:_MOST_FOLDERS]]
    if rest := ordered[_MOST_FOLDERS:]:
        together = sum((counts for _, counts in rest), start=Counter[Severity]())
        rows.append(_row(words.other_folders.format(count=len(rest)), together, shown=shown))
    header = (words.folder, *(phrases.severity[severity] for severity in shown), words.total)
    return Table(header, tuple(rows))


def _row(name: str, counts: Counter[Severity], *, shown: Iterable[Severity]) -> tuple[str, ...]:
    return (name, *(str(counts[severity] or "") for severity in shown), str(counts.total()))


def _folder(path: str) -> str:
    return "/".join(path.split("/")[:-1][:_FOLDER_DEPTH])


def _worst(findings: list[Finding]) -> Severity:
    return min((finding.severity for finding in findings), key=lambda severity: severity.rank)
