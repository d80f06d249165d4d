"""A finding keeps its name while the code around it changes, so that a baseline stays true."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casemate.agents.audit.scan import scan, scan_snippet
from casemate.finding import Finding

_HEAD = "import hashlib, yaml, requests\n\n"
_FUNCTIONS = {
    "stored": "def stored(password):\n    return hashlib.md5(password.encode()).hexdigest()\n",
    "again": "def again(password):\n    return hashlib.md5(password.encode()).hexdigest()\n",
    "loaded": "def loaded(path):\n    return yaml.load(open(path), Loader=yaml.Loader)\n",
    "asked": (
        "def asked(url):\n    first = requests.get(url, verify=False)\n"
        "    return requests.get(url, verify=False), first\n"
    ),
    "Store": (
        "class Store:\n    def stored(self, password):\n        return hashlib.md5(password.encode()).hexdigest()\n"
    ),
}


def _found(code: str) -> tuple[Finding, ...]:
    found = scan_snippet(code)
    assert isinstance(found, tuple)
    return found


def _names(code: str) -> dict[tuple[str, str], list[str]]:
    """Fingerprints by rule and scope, in the order of lines."""
    names: dict[tuple[str, str], list[str]] = {}
    for finding in sorted(_found(code), key=lambda finding: finding.location.line):
        names.setdefault((finding.rule, finding.scope), []).append(finding.fingerprint)
    return names


_BEFORE = _names(_HEAD + "\n".join(_FUNCTIONS.values()))


def test_the_material_has_equal_code_in_several_places_and_twice_in_one() -> None:
    assert {scope for _, scope in _BEFORE} == {"stored", "again", "loaded", "asked", "Store.stored"}
    assert max(len(names) for names in _BEFORE.values()) == 2
    every = [name for names in _BEFORE.values() for name in names]
    assert len(set(every)) == len(every)


@settings(max_examples=25, deadline=None)
@given(
    order=st.permutations(list(_FUNCTIONS)),
    gaps=st.lists(st.sampled_from(["", "\n\n", "# a remark\n", "X = 1\n"]), min_size=5, max_size=5),
    unrelated=st.sampled_from(["", "def other():\n    return 1\n", "def renamed(a, b):\n    return a + b\n"]),
)
def test_moved_lines_other_order_and_unrelated_code_change_no_fingerprint(
    order: list[str], gaps: list[str], unrelated: str
) -> None:
    body = "\n".join(gap + _FUNCTIONS[name] for name, gap in zip(order, gaps, strict=True))
    assert _names(_HEAD + unrelated + "\n" + body) == _BEFORE


@pytest.mark.parametrize("where", ["before", "after"])
def test_an_equal_place_in_another_function_makes_one_new_name_and_shifts_none(where: str) -> None:
    one, more = _FUNCTIONS["stored"], _FUNCTIONS["again"].replace("again", "newcomer")
    names = _names(_HEAD + (f"{more}\n{one}" if where == "before" else f"{one}\n{more}"))
    assert names["weak-hash", "stored"] == _BEFORE["weak-hash", "stored"]
    assert len(names) == 2


def test_an_equal_place_in_the_same_function_makes_exactly_one_new_name() -> None:
    more = _FUNCTIONS["asked"].replace("    return", "    requests.get(url, verify=False)\n    return")
    before = {finding.fingerprint for finding in _found(_HEAD + _FUNCTIONS["asked"])}
    after = {finding.fingerprint for finding in _found(_HEAD + more)}
    assert before < after
    assert len(after - before) == 1


def test_white_space_in_the_place_itself_does_not_count() -> None:
    wide = _FUNCTIONS["loaded"].replace("open(path), Loader", "open(path),\n                     Loader")
    (name,) = [name for (_, scope), names in _BEFORE.items() if scope == "loaded" for name in names]
    assert [finding.fingerprint for finding in _found(_HEAD + wide)] == [name]


def test_five_runs_give_the_same_findings_in_the_same_order(tmp_path: Path) -> None:
    shuffled = random.Random(5)
    for number in range(6):
        names = list(_FUNCTIONS)
        shuffled.shuffle(names)
        (tmp_path / f"m{number}.py").write_text(_HEAD + "\n".join(_FUNCTIONS[name] for name in names))
    first, *others = [scan(tmp_path) for _ in range(5)]
    assert len(first.findings) == 36
    assert all(other == first for other in others)
