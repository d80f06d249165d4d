"""Figures of the code audit: speed, the shop, the held-out pairs, and any outside set of insecure snippets.

python bench/audit.py                         speed on the standard library's files, shop, held-out pairs
python bench/audit.py --snippets FILE.jsonl   recall by CWE; lines with `ID` (`CWE-089_…`) and `Insecure_code`
python bench/audit.py --tree FOLDER           time, counts and skips of one folder
"""

from __future__ import annotations

import argparse
import json
import sysconfig
import time
from collections import Counter, defaultdict
from pathlib import Path

from casemate.agents.audit.facts.syntax import parse
from casemate.agents.audit.flow.statements import summarize
from casemate.agents.audit.reading.material import decode, walk
from casemate.agents.audit.rules import RULES
from casemate.agents.audit.scan import scan, scan_snippet
from casemate.finding import Unread

ROOT = Path(__file__).resolve().parent.parent
SPEED_LINES = 60_000


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--snippets", type=Path)
    parser.add_argument("--tree", type=Path)
    wanted = parser.parse_args()
    if wanted.snippets:
        snippets(wanted.snippets)
    elif wanted.tree:
        tree(wanted.tree)
    else:
        speed()
        shop()
        heldout()


def speed() -> None:
    """Lines a second of one core, parsing and flow analysis together, on files of the standard library."""
    folder = Path(sysconfig.get_path("stdlib"))
    lines, used_s = 0, 0.0
    for path in walk(folder).python:
        if lines >= SPEED_LINES:
            break
        try:
            text = decode((folder / path).read_bytes())
            begin = time.process_time()
            source = parse(text, path)
        except (SyntaxError, ValueError):
            continue
        summarize(source)
        used_s += time.process_time() - begin
        lines += len(source.lines)
    print(f"speed: {lines} lines in {used_s:.1f} s of CPU, {lines / used_s:,.0f} lines/s a core")


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
