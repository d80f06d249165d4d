# noqa: INP001 - a script that is run, in no package
"""Records the flags of engine versions into the table that ships with Casemate.

    .venv/bin/python scripts/record_flags.py vllm-0.34.0-cp312-abi3-manylinux_x86_64.whl …

Each argument is a wheel, or a folder that holds `vllm/` (a site-packages folder, an unpacked wheel). What the table
has of other versions stays; `--afresh` starts it anew. The source is read as syntax and never imported.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from casemate.engine.flags import table
from casemate.engine.flags.extract import table as extracted
from casemate.engine.flags.installed import source

_TABLE = Path(__file__).resolve().parents[1] / "src" / "casemate" / "engine" / "flags" / "vllm.tsv"


def main() -> int:
    """Read every place that was named and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="+", type=Path, metavar="WHEEL|FOLDER")
    parser.add_argument("--afresh", action="store_true", help="forget the versions that are recorded")
    parser.add_argument(
        "--into", type=Path, default=_TABLE, metavar="FILE", help="the table (default: the shipped one)"
    )
    asked = parser.parse_args()
    old = None if asked.afresh else table.parsed(asked.into.read_text(encoding="utf-8"))
    held = {version: old.table(version) for version in old.versions} if old else {}
    for place in asked.places:
        version, texts = source(place)
        held[version] = extracted(texts, version)
        sys.stdout.write(f"{version}: {len(held[version].flags)} flags, {len(held[version].variables)} variables\n")
    asked.into.write_text(table.written(held.values()), encoding="utf-8")
    sys.stdout.write(f"{asked.into}: {asked.into.stat().st_size} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
