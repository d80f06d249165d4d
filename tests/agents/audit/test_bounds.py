"""No bound of the audit ends in a false "clean": long flows are found, and a search that is given up says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from casemate.agents.audit.facts.summary import Call, Function, Hit, Module
from casemate.agents.audit.facts.values import Parameter, Source, Taints, Value
from casemate.agents.audit.linking.link import Reached, link
from casemate.agents.audit.scan import linked, scan, scan_snippet
from casemate.finding import FlowStep, Location, Unread

_HERE = Location("a.py", 1, 1, 1, 2)


def _handed_down(length: int) -> str:
    """Code where input goes down a chain of functions to a sink in the last."""
    chain = "".join(f"def f{n}(x):\n    return f{n + 1}(x)\n" for n in range(length))
    return f"import os\n{chain}def f{length}(x):\n    os.system(x)\nf0(input())\n"


def _handed_back(length: int, call: str = "f{0}(x)") -> str:
    """Code where input comes back through a chain of functions to a sink beside the first."""
    chain = "".join(f"def f{n}(x):\n    return {call.format(n + 1)}\n" for n in range(length))
    return f"import os\n{chain}def f{length}(x):\n    return x\nos.system(f0(input()))\n"


def _module(length: int) -> Module:
    """The summary of `_handed_down`, without its text."""
    functions = {f"a.f{n}": Function(f"a.f{n}", ("x",)) for n in range(length + 1)}
    entered: Taints = {Source("input", "local", FlowStep(_HERE, "input")): frozenset()}
    passed: list[Taints] = [{Parameter(f"a.f{n}", "x"): frozenset()} for n in range(length)]
    calls = {str(n): Call(f"a.f{n}", _HERE, {"0": Value(taints=taints)}) for n, taints in enumerate([entered, *passed])}
    hit = Hit(
        "command-injection", _HERE, "x", "x", kind="command", taints={Parameter(f"a.f{length}", "x"): frozenset()}
    )
    return Module("a.py", "a", (hit,), calls, functions)


@pytest.mark.parametrize("length", [5, 20, 100, 500])
@pytest.mark.parametrize("chain", [_handed_down, _handed_back])
def test_a_flow_through_many_functions_is_found_with_every_call_of_it(
    tmp_path: Path, chain: Callable[[int], str], length: int
) -> None:
    (tmp_path / "a.py").write_text(chain(length))
    result = scan(tmp_path)
    (finding,) = result.findings
    assert finding.rule == "command-injection"
    assert len(finding.flow) == length + 3
    assert result.ledger.complete


@pytest.mark.parametrize("length", [3, 60])
def test_a_flow_whose_calls_double_in_every_function_is_found(length: int) -> None:
    outcome = scan_snippet(_handed_back(length, "f{0}(f{0}(x))"))
    assert not isinstance(outcome, Unread)
    assert [finding.rule for finding in outcome] == ["command-injection"]


def test_a_function_that_calls_itself_ends_the_search_and_not_the_flow(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "import os\ndef f(x, n):\n    return f(x, n - 1) if n else x\nos.system(f(input(), 9))\n"
    )
    assert [finding.rule for finding in scan(tmp_path).findings] == ["command-injection"]


def test_a_search_that_is_given_up_is_unread_and_never_clean() -> None:
    assert [type(real) for real in link([_module(40_000)])] == [Reached]
    (cut,) = link([_module(60_000)])
    assert cut == Unread("a.py", "flow search cut after 50000 steps, findings may be missing")


def test_files_whose_search_was_cut_are_named_once_each_and_their_hits_stand() -> None:
    module = _module(60_000)
    weak = replace(module.hits[0], kind="")
    reached, cut = linked([replace(module, hits=(*module.hits, weak, *module.hits))])
    assert [real.hit for real in reached] == [weak]
    assert [unread.path for unread in cut] == ["a.py"]


def test_a_long_snippet_is_analysed_and_an_endless_one_is_unread_for_a_reason() -> None:
    outcome = scan_snippet("import os\n" + "x = 1\n" * 3000 + "os.system('x ' + input())\n")
    assert not isinstance(outcome, Unread)
    assert [finding.rule for finding in outcome] == ["command-injection"]
    refused = scan_snippet("x = " + "-" * 20_000 + "1\n")
    assert refused == Unread("snippet.py", "nested too deeply for the parser")


def test_a_value_of_more_origins_than_are_kept_apart_is_unread_and_never_clean(tmp_path: Path) -> None:
    parts = "".join(f"    text += parts.part{n}()\n" for n in range(400))
    (tmp_path / "a.py").write_text(
        "import os\nimport parts\nfrom flask import request\n"
        f"def f():\n    text = ''\n{parts}    os.system(text + request.args['q'])\n"
    )
    result = scan(tmp_path)
    assert result.findings == ()
    assert [unread.reason for unread in result.ledger.failed] == [
        "a value has too many origins, findings may be missing"
    ]


@pytest.mark.parametrize("depth", [2, 12])
def test_modules_that_import_each_other_by_stars_and_aliases_are_linked(tmp_path: Path, depth: int) -> None:
    for n in range(depth):
        after = (n + 1) % depth
        (tmp_path / f"m{n}.py").write_text(
            f"from m{after} import *\nfrom m{after} import deep as m{after}deep\nimport m{after} as m{after}deep\n"
        )
    (tmp_path / "m0.py").write_text("from m1 import *\nimport os\ndef go(x): os.system(x)\n")
    (tmp_path / "main.py").write_text("from m1 import *\nimport m1\ngo(input())\nm1.gone(input())\n")
    result = scan(tmp_path)
    assert [finding.rule for finding in result.findings] == ["command-injection"]
    assert result.ledger.complete
