"""The small CWE list of the tests in every form that the official one is published in."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

SMALL = Path(__file__).parents[1] / "knowledge" / "small"
LISTS = ("Weaknesses", "Categories", "Views")

Form = Callable[[Path], Path]


def bundle() -> dict[str, Any]:
    return dict(json.loads((SMALL / "cwe.json").read_text()))


def entries() -> list[dict[str, Any]]:
    return [entry for key in LISTS for entry in bundle()[key]]


def lines(content: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(entry) + "\n" for entry in content)


def as_bundle(folder: Path) -> Path:
    path = folder / "list.json"
    path.write_text(json.dumps(bundle()))
    return path


def as_shuffled_bundle(folder: Path) -> Path:
    content = {key: bundle()[key] for key in ("Categories", "Weaknesses", "Views", "ContentVersion")}
    content["Weaknesses"].reverse()
    path = folder / "list.json"
    path.write_text(json.dumps(content, indent=4), encoding="utf-8-sig")
    return path


def as_packed_bundle(folder: Path) -> Path:
    path = folder / "list.json.gz"
    path.write_bytes(gzip.compress(json.dumps(bundle()).encode()))
    return path


def as_array(folder: Path) -> Path:
    path = folder / "cwe-9.1.json"
    path.write_text(json.dumps(entries()))
    return path


def as_lines(folder: Path) -> Path:
    path = folder / "cwe_v9.1.jsonl"
    path.write_text("\n" + lines(random.Random(7).sample(entries(), k=len(entries()))))
    return path


def as_packed_lines(folder: Path) -> Path:
    path = folder / "cwe-9.1.jsonl.gz"
    path.write_bytes(gzip.compress(lines(entries()).encode()))
    return path


def as_three_files(folder: Path) -> Path:
    for key in LISTS:
        (folder / f"cwe-9.1.{key.lower()}.jsonl.gz").write_bytes(gzip.compress(lines(bundle()[key]).encode()))
    (folder / "README.txt").write_text("Not part of it.")
    return folder


def as_folder_of_entries(folder: Path) -> Path:
    root = folder / "cwe-9.1"
    for key in LISTS:
        (root / key[0]).mkdir(parents=True)
        for entry in bundle()[key]:
            (root / key[0] / f"{entry['ID']}.json").write_text(json.dumps(entry))
    return root


def as_folder_of_responses(folder: Path) -> Path:
    for key in LISTS:
        for entry in bundle()[key]:
            (folder / f"{entry['ID']}.json").write_text(json.dumps({key: [entry]}))
    (folder / "version.json").write_text(json.dumps({"ContentVersion": "9.1", "ContentDate": "2026-01-01"}))
    return folder


FORMS = (
    as_bundle,
    as_shuffled_bundle,
    as_packed_bundle,
    as_array,
    as_lines,
    as_packed_lines,
    as_three_files,
    as_folder_of_entries,
    as_folder_of_responses,
)
