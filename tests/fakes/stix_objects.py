"""STIX objects in every form that MITRE publishes them in."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

SMALL = Path(__file__).parents[1] / "knowledge" / "small"

Object = dict[str, Any]
Form = Callable[[Path, list[Object]], Path]


def objects(sample: Path) -> list[Object]:
    return list(json.loads(sample.read_text())["objects"])


def one(content: list[Object], id_: str) -> Object:
    return next(item for item in content if item["id"] == id_)


def written(path: Path, content: list[Object]) -> Path:
    path.write_text(json.dumps({"type": "bundle", "id": "bundle--3", "objects": content}))
    return path


def as_bundle(root: Path, content: list[Object]) -> Path:
    return written(root / "bundle.json", content)


def as_wide_bundle(root: Path, content: list[Object]) -> Path:
    path = root / "bundle.json"
    whole = {"objects": content[::-1], "type": "bundle"}
    path.write_text(json.dumps(whole, indent=4, ensure_ascii=False), encoding="utf-8-sig")
    return path


def as_packed_bundle(root: Path, content: list[Object]) -> Path:
    path = root / "bundle.json.gz"
    path.write_bytes(gzip.compress(written(root / "unpacked", content).read_bytes()))
    return path


def as_array(root: Path, content: list[Object]) -> Path:
    path = root / "objects.json"
    path.write_text(json.dumps(random.Random(5).sample(content, k=len(content))))
    return path


def as_lines(root: Path, content: list[Object]) -> Path:
    path = root / "objects.jsonl"
    path.write_text("".join(json.dumps(item) + "\n" for item in random.Random(6).sample(content, k=len(content))))
    return path


def as_two_packed_files(root: Path, content: list[Object]) -> Path:
    for name, wanted in (("objects", False), ("relationships", True)):
        lines = "".join(json.dumps(item) + "\n" for item in content if (item["type"] == "relationship") is wanted)
        (root / f"{name}.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    return root


def as_folder_of_bundles(root: Path, content: list[Object]) -> Path:
    for number, item in enumerate(content):
        (root / item["type"]).mkdir(exist_ok=True)
        written(root / item["type"] / f"{item['id']}.{number}.json", [item])
    return root


def as_folder_beside_its_bundle(root: Path, content: list[Object]) -> Path:
    as_folder_of_bundles(root, content)
    written(root / "everything.json", content)
    return root


FORMS = (
    as_bundle,
    as_wide_bundle,
    as_packed_bundle,
    as_array,
    as_lines,
    as_two_packed_files,
    as_folder_of_bundles,
    as_folder_beside_its_bundle,
)
