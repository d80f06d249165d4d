"""Figures of the code audit, in one run.

python bench/audit.py                         speed (bandit beside it where found), second run, memory, shop, pairs
python bench/audit.py --labelled DIR|JSONL    TPR, FPR and Youden by kind on a labelled set (bench/audit_labelled.py)
python bench/audit.py --scale [SIZE…]         time and memory by size; of copies of --trees DIR… instead of made ones
python bench/audit.py --sample N --tree DIR   N findings drawn by chance, with context, to look at by hand
python bench/audit.py --tree DIR              time, counts and skips of one folder
python bench/audit.py --snippets FILE.jsonl   recall by CWE; lines with `ID` (`CWE-089_…`) and `Insecure_code`

--bandit PATH, --semgrep PATH --semgrep-rules DIR, --pysa errors.json put other engines beside it.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sysconfig
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

import audit_engines as engines
import audit_labelled
import audit_scale
from casemate.agents.audit.flow.statements import summarize
from casemate.agents.audit.incremental.store import Store
from casemate.agents.audit.reading.files import load
from casemate.agents.audit.rules import RULES
from casemate.agents.audit.scan import scan, scan_snippet
from casemate.finding import Unread

ROOT = Path(__file__).resolve().parent.parent
SPEED_LINES = 60_000
SIZES = (50_000, 100_000, 250_000, 500_000, 1_000_000)
_SEED = 7
_CONTEXT = 6


def main() -> None:
    """Print what was asked for."""
    wanted = _arguments()
    if wanted.labelled and wanted.labelled.is_file():
        with tempfile.TemporaryDirectory() as folder:
            wanted.labelled = audit_labelled.unpacked(wanted.labelled, Path(folder))
            compare(wanted)
    elif wanted.labelled:
        compare(wanted)
    elif wanted.scale is not None:
        audit_scale.report(wanted.scale or SIZES, wanted.trees)
    elif wanted.sample and wanted.tree:
        sample(wanted.tree, wanted.sample)
    elif wanted.snippets:
        snippets(wanted.snippets)
    elif wanted.tree:
        tree(wanted.tree)
    else:
        speed(wanted)
        shop()
        heldout()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labelled", type=Path)
    parser.add_argument("--scale", type=int, nargs="*")
    parser.add_argument("--trees", type=Path, nargs="*", default=[])
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--tree", type=Path)
    parser.add_argument("--snippets", type=Path)
    parser.add_argument("--bandit", default=shutil.which("bandit") or "")
    parser.add_argument("--semgrep", default=shutil.which("semgrep") or "")
    parser.add_argument("--semgrep-rules", type=Path)
    parser.add_argument("--pysa", type=Path)
    return parser.parse_args()


def speed(wanted: argparse.Namespace) -> None:
    """Lines a second of one core with flow analysis on files of the standard library; other engines on the same."""
    with tempfile.TemporaryDirectory() as name:
        folder, store = Path(name) / "files", Store(Path(name) / "audits")
        lines = audit_scale.gather(folder, [Path(sysconfig.get_path("stdlib"))], lines=SPEED_LINES)
        used_s = _summarized_s(folder)
        print(
            f"speed: {lines:,} lines in {used_s:.1f} s of CPU, {lines / used_s:,.0f} lines/s a core, parsing and flow"
        )
        ours = audit_scale.measured(folder, store)
        print(f"whole audit of them: {ours.cpu_s:.1f} s of CPU, {ours.findings} findings, {_peak(ours)}")
        for ran in _others(wanted, folder):
            ratio = ran.cpu_s / ours.cpu_s
            print(f"{ran.name}: {ran.cpu_s:.1f} s of CPU, {len(ran.findings)} findings; ours is {ratio:.2f}x its speed")
        print(audit_scale.seconds(ours, audit_scale.second_runs(folder, store)))


def _summarized_s(folder: Path) -> float:
    begin = time.process_time()
    for path in sorted(folder.rglob("*.py")):
        try:
            summarize(load(str(folder), path.relative_to(folder).as_posix()))
        except (SyntaxError, ValueError):
            continue
    return time.process_time() - begin


def _peak(cost: audit_scale.Cost) -> str:
    return f"peak {cost.peak_bytes / 1e6:.0f} MB over all processes"


def _others(wanted: argparse.Namespace, folder: Path) -> list[engines.Ran]:
    """The engines that were found, run on a folder."""
    ran = []
    if wanted.bandit:
        ran.append(engines.bandit(wanted.bandit, [folder], below=folder))
    if wanted.semgrep and wanted.semgrep_rules:
        ran.append(engines.semgrep(wanted.semgrep, [folder], rules=wanted.semgrep_rules, below=folder))
    return ran


def compare(wanted: argparse.Namespace) -> None:
    """Casemate and the engines that were found on a labelled set."""
    programs = audit_labelled.labelled(wanted.labelled)
    audit_labelled.report(programs, engines.casemate(wanted.labelled))
    others = _others(wanted, wanted.labelled)
    if wanted.pysa:
        others.append(engines.pysa(wanted.pysa, below="src/"))
    for ran in others:
        audit_labelled.report(programs, ran)


def sample(folder: Path, count: int) -> None:
    """Findings drawn by chance, the same in every run, each with the lines around it and its flow."""
    findings = scan(folder).findings
    drawn = random.Random(_SEED).sample(findings, min(count, len(findings)))
    print(f"{len(drawn)} of {len(findings)} findings")
    for number, finding in enumerate(drawn, 1):
        at = finding.location
        print(f"\n=== {number}: {finding.rule} {finding.cwe} {finding.confidence} {at.path}:{at.line}")
        for step in finding.flow:
            print(f"  {step.location.path}:{step.location.line} {step.note}")
        lines = load(str(folder), at.path).lines
        first = max(1, at.line - _CONTEXT)
        for line, text in enumerate(lines[first - 1 : at.end_line + 2], first):
            print(f"{'>' if at.line <= line <= at.end_line else ' '}{line:5} {text}")


def shop() -> None:
    """The example: weaknesses found, and anything else that was."""
    folder = ROOT / "examples" / "shop"
    expected = json.loads((folder / "expected.json").read_text())
    begin = time.perf_counter()
    found = {(f.location.path, f.location.line, f.rule) for f in scan(folder).findings}
    wall_s = time.perf_counter() - begin
    wanted = {(w["path"], w["line"], w["rule"]) for w in expected["weaknesses"]}
    print(f"shop: {len(found & wanted)}/{len(wanted)} found, {len(found - wanted)} others, {wall_s:.2f} s")


def heldout() -> None:
    """The pairs: bad programs flagged with the right CWE, good ones not at all."""
    pairs = sorted((ROOT / "tests" / "agents" / "audit" / "heldout").glob("*.pair"))
    hits = alarms = 0
    for path in pairs:
        cwe, rest = path.read_text().split("\n---- bad\n")
        bad, good = rest.split("\n---- good\n")
        hits += cwe in weaknesses(bad)
        alarms += bool(weaknesses(good))
    print(f"held-out pairs: recall {hits}/{len(pairs)}, false alarms {alarms}/{len(pairs)}")


def snippets(path: Path) -> None:
    """Recall by CWE on insecure snippets, exact id; and of the kinds for which there is a rule."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for line in path.read_text().splitlines():
        record = json.loads(line)
        cwe = "CWE-" + record["ID"].split("_")[0].removeprefix("CWE-").lstrip("0")
        ids = weaknesses(record["Insecure_code"])
        found[cwe].update(total=1, exact=int(cwe in ids), any=int(bool(ids)))
    ours = {rule.cwe for rule in RULES.values()}
    for cwe in sorted(found, key=lambda name: int(name.removeprefix("CWE-"))):
        row = found[cwe]
        print(f"{cwe:9} {'ours' if cwe in ours else '':4} exact {row['exact']}, any {row['any']}, of {row['total']}")
    for name, rows in (("all", found.values()), ("kinds with a rule", [found[c] for c in found if c in ours])):
        total = sum(row["total"] for row in rows)
        exact, anything = sum(row["exact"] for row in rows), sum(row["any"] for row in rows)
        print(f"{name} ({total}): exact {exact} = {exact / total:.2f}, any finding {anything} = {anything / total:.2f}")


def weaknesses(code: str) -> set[str]:
    """CWE ids of what is found in a snippet; none where it cannot be analysed."""
    outcome = scan_snippet(code)
    return set() if isinstance(outcome, Unread) else {finding.cwe for finding in outcome}


def tree(folder: Path) -> None:
    """One folder: time, ledger, findings by rule."""
    begin = time.perf_counter()
    result = scan(folder)
    wall_s = time.perf_counter() - begin
    ledger = result.ledger
    print(f"{wall_s:.1f} s, analysed {ledger.analysed}, skipped {len(ledger.skipped)}, failed {len(ledger.failed)}")
    for unread in ledger.failed:
        print(f"  failed {unread.path}: {unread.reason}")
    for reason, count in Counter(unread.reason for unread in ledger.skipped).most_common():
        print(f"  skipped {count}: {reason}")
    for rule, count in Counter(finding.rule for finding in result.findings).most_common():
        print(f"  {rule}: {count}")


if __name__ == "__main__":
    main()
