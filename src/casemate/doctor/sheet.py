"""What the doctor says to people: checks and advice as a Document. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from casemate.doctor.advice import Advice, Install
from casemate.doctor.checks.check import Check, Verdict, dotted, gib, listed
from casemate.doctor.checks.verdict import ESSENTIAL, overall
from casemate.doctor.machine import Machine
from casemate.report import document as d

_TONES: dict[Verdict, d.Tone] = {"ok": "good", "warn": "warn", "fail": "bad", "unknown": "note"}
_ORDER: tuple[Verdict, ...] = ("fail", "warn", "unknown", "ok")
_THEMES = {
    "cards": "Cards",
    "driver": "Driver and CUDA",
    "links": "Links between cards",
    "health": "Power, heat, memory errors",
    "packages": "Engine packages",
    "container": "Containers and permissions",
    "limits": "System limits",
    "model": "Model and disk",
}


def document(machine: Machine, checks: tuple[Check, ...], *, advice: Advice | None = None) -> d.Document:
    """The verdict first, then what to do, the advice if it was asked for, and every check with what was found."""
    troubled = sorted((check for check in checks if check.verdict != "ok"), key=_urgency)
    to_do = tuple(_told(check) for check in troubled)
    sections = [d.Section("What to do", sections=to_do)] if to_do else []
    if advice is not None:
        sections.append(_advised(advice))
    sections.append(_everything(checks))
    return d.Document("Doctor", tuple(sections), lead=(_verdict(machine, checks), _host(machine)))


def _urgency(check: Check) -> int:
    """What is broken comes first, then what must be known and is not, then the rest."""
    return 1 if check.verdict == "unknown" and check.id in ESSENTIAL else 2 * _ORDER.index(check.verdict)


def _verdict(machine: Machine, checks: tuple[Check, ...]) -> d.Verdict:
    counts = {verdict: sum(check.verdict == verdict for check in checks) for verdict in _ORDER}
    told = f"{counts['ok']} ok, {counts['warn']} warnings, {counts['fail']} failed, {counts['unknown']} unknown"
    match overall(checks):
        case "fail":
            said = "Something is broken"
        case "unknown":
            blind = ", ".join(c.id for c in checks if c.verdict == "unknown" and c.id in ESSENTIAL)
            said = f"Not enough is known to say that an engine runs on these cards ({blind})"
        case "warn":
            said = "It works, with warnings"
        case "ok":
            said = "All is well" if not counts["unknown"] else "Nothing wrong was found"
    cpu = "" if machine.cards else ". Without cards the platform runs its CPU engine"
    return d.Verdict(_TONES[overall(checks)], f"{said}: {told}{cpu}")


def _host(machine: Machine) -> d.Figures:
    memory = f"{gib(machine.memory_available_bytes)} available of {gib(machine.memory_total_bytes)}"
    rows = [
        d.Figure("host", f"{machine.system} {machine.architecture}, {machine.cores} cores, {memory}"),
        d.Figure("cards", listed(machine.cards, lambda card: card.name or "unnamed") or "none"),
    ]
    if driver := machine.driver:
        rows.append(d.Figure("driver", f"{driver.version or 'unknown'}, CUDA {dotted(driver.cuda)}"))
    return d.Figures(tuple(rows))


def _told(check: Check) -> d.Section:
    blocks: list[d.Block] = [d.Verdict(_TONES[check.verdict], check.found)]
    if check.why and check.verdict != "unknown":
        blocks.append(d.Paragraph(check.why))
    blocks += [d.Paragraph(f"Remedy: {check.remedy}."), d.Code(check.verify, "Verify", "sh")]
    return d.Section(f"{check.verdict}: {check.title} ({check.id})", tuple(blocks))


def _everything(checks: tuple[Check, ...]) -> d.Section:
    themes = [theme for theme in _THEMES if any(check.theme == theme for check in checks)]
    return d.Section("Every check", sections=tuple(_theme(theme, checks) for theme in themes))


def _theme(theme: str, checks: tuple[Check, ...]) -> d.Section:
    rows = tuple((check.verdict, check.title, _found(check)) for check in checks if check.theme == theme)
    return d.Section(_THEMES[theme], (d.Table(("", "check", "found"), rows),))


def _found(check: Check) -> str:
    return f"{check.found}. {check.why}" if check.verdict == "ok" and check.why else check.found


def _advised(advice: Advice) -> d.Section:
    if isinstance(advice, Install):
        return d.Section("Advice: the engine to install", tuple(_install(advice)))
    why = tuple(d.Paragraph(f"Because {reason}.") for reason in advice.reasons)
    return d.Section("Advice", (d.Verdict("note", advice.remedy), *why))


def _install(advice: Install) -> Iterator[d.Block]:
    built = f"vLLM {advice.release} for CUDA {dotted(advice.cuda)}, Python {dotted(advice.python)}"
    yield d.Verdict("good", f"{built}: {'; '.join(advice.reasons)}")
    yield d.Code("\n".join(advice.lock), "Save as engine.lock")
    yield d.Code(advice.command, "Install", "sh")
    for note in advice.notes:
        yield d.Paragraph(f"Note: {note}.")
    yield d.Links("Versions and digests are published at", tuple(source.partition(" ")[0] for source in advice.sources))
