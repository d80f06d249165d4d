"""Every dossier: its form, its examples, its detection rule, and that nothing in it is a template."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from importlib import resources
from itertools import chain
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import tree_sitter
import tree_sitter_c
import tree_sitter_go
import tree_sitter_java
import tree_sitter_javascript

CURATED = Path(str(resources.files("casemate.knowledge.curated")))
SCHEMA = json.loads((CURATED / "dossier.schema.json").read_text(encoding="utf-8"))
FILES = sorted((CURATED / "dossiers").glob("*.toml"))
DOSSIERS = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in FILES}
GRAMMARS = {
    "javascript": tree_sitter_javascript.language(),
    "java": tree_sitter_java.language(),
    "go": tree_sitter_go.language(),
    "c": tree_sitter_c.language(),
}
HAN = re.compile(r"[\u3400-\u9fff]")
SEQUENCE_WORDS = 7
SEQUENCE_CHARACTERS = 14

each_dossier = pytest.mark.parametrize("cwe", DOSSIERS)


@each_dossier
def test_a_dossier_follows_the_schema(cwe: str) -> None:
    jsonschema.validate(DOSSIERS[cwe], SCHEMA)
    assert DOSSIERS[cwe]["cwe"] == cwe, "the file is named after its weakness"


@each_dossier
def test_each_language_is_written_in_itself(cwe: str) -> None:
    for line in prose(DOSSIERS[cwe]["zh"]):
        assert HAN.search(line), f"not Chinese: {line}"
    for line in prose(DOSSIERS[cwe]["en"]):
        assert not HAN.search(line), f"not English: {line}"


@each_dossier
def test_each_example_parses_in_its_language(cwe: str) -> None:
    for example in DOSSIERS[cwe]["example"]:
        for side in ("bad", "good"):
            assert parses(example["language"], example[side]), f"{cwe} {example['language']} {side} does not parse"


@each_dossier
def test_the_detection_rule_flags_the_bad_example_and_not_the_good_one(cwe: str) -> None:
    for example in DOSSIERS[cwe]["example"]:
        rule = re.compile(example["detect"], re.MULTILINE)
        assert rule.search(example["bad"]), f"{cwe} {example['language']}: the rule misses the bad example"
        assert not rule.search(example["good"]), f"{cwe} {example['language']}: the rule flags the good example"


@each_dossier
def test_a_language_has_one_example(cwe: str) -> None:
    languages = [example["language"] for example in DOSSIERS[cwe]["example"]]
    assert len(languages) == len(set(languages))


def test_there_are_at_least_130_dossiers() -> None:
    assert len(DOSSIERS) >= 130


def test_no_name_stands_for_two_weaknesses() -> None:
    owners = defaultdict(set)
    for cwe, dossier in DOSSIERS.items():
        for language in ("en", "zh"):
            for alias in dossier[language]["aliases"]:
                owners[alias.casefold()].add(cwe)
    assert {alias: sorted(found) for alias, found in owners.items() if len(found) > 1} == {}


def test_no_sentence_is_a_template() -> None:
    owners = defaultdict(set)
    for cwe, dossier in DOSSIERS.items():
        lines = (line for language in ("en", "zh") for line in prose(dossier[language]))
        for sequence in chain.from_iterable(map(sequences, lines)):
            owners[sequence].add(cwe)
    repeated = {sequence: sorted(found) for sequence, found in owners.items() if len(found) > 2}
    assert repeated == {}, "the same run of words in three dossiers or more"


def prose(half: dict[str, Any]) -> Iterator[str]:
    yield half["description"]
    yield half["test"]
    for field in ("triggers", "safe", "symptoms"):
        yield from half[field]


def sequences(line: str) -> Iterator[str]:
    if HAN.search(line):
        plain = re.sub(r"\s+", "", line)
        yield from (plain[at : at + SEQUENCE_CHARACTERS] for at in range(len(plain) - SEQUENCE_CHARACTERS + 1))
        return
    words = re.findall(r"[a-z0-9]+", line.casefold())
    yield from (" ".join(words[at : at + SEQUENCE_WORDS]) for at in range(len(words) - SEQUENCE_WORDS + 1))


def parses(language: str, code: str) -> bool:
    if language == "python":
        try:
            ast.parse(code)
        except SyntaxError:
            return False
        return True
    tree = tree_sitter.Parser(tree_sitter.Language(GRAMMARS[language])).parse(code.encode())
    return not tree.root_node.has_error
