"""No check trusts the shape of a call: what it looks at may be missing, spread, computed, or an odd expression."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

import pytest

from casemate.agents.audit.checks import weak
from casemate.agents.audit.facts.syntax import parse
from casemate.agents.audit.flow.statements import summarize
from casemate.agents.audit.rules import RULES, Rule
from casemate.agents.audit.sinks.tables import SINKS

_ODD = (
    "",
    "*a",
    "**k",
    "*a, **k",
    "x, *a",
    "*a, key=x",
    "lambda: 0",
    "lambda *a, **k: (yield)",
    "(w := x)",
    "f\"{f'{x}'!r:>{y}}\"",
    "x for x in y if x",
    "[], {}, (), {*a}, {**k}, ...",
    "x[:], x[1:, ...], -x, not x, x < y < z",
    "None, True, b'', 1j, 10**100, 'a' 'b'",
    "x if y else z, x or y, x @ y",
    "x.y.z()()[0].w, x[y](z)(*a)",
)
"""Arguments of a call in every form of the grammar."""
_KEYWORDS = ("url", "path", "key", "mode", "size", "method", "data", "name", "Loader", "options", "filter", "verify")
_STATEMENTS = """
def f(a, /, b, *c, d=1, **e): {call}
async def g(x): return await {call}
with {call} as (x, *y): pass
for x[0], y.z in {call}: x += {call}
match {call}:
    case {{'k': [1, *_], **rest}} | (1 | 2) as rest if (w := {call}): pass
    case str(x) | [x, _] as rest: pass
class C({call}, metaclass=m): x: {call} = {call}
x = y.z = w[{call}] = {call}
assert {call}, {call}
del x[{call}]
try: raise {call} from {call}
except* (A, B) as e: {call}
lambda p, /, *q, r={call}, **s: {call}
global_ = {call} == {call} != {call}
{call} % {call} * {call}
@{call}
def h(x={call}) -> {call}: yield from {call}
"""
"""Places of the grammar that a call may stand in."""


def _shapes(call: ast.Call) -> Iterator[str]:
    """The same call with less, more, renamed and odd arguments."""
    function = ast.unparse(call.func)
    yield from (f"{function}({arguments})" for arguments in _ODD)
    yield from (f"{function}({keyword}=x)" for keyword in _KEYWORDS)
    named = [keyword.arg for keyword in call.keywords if keyword.arg]
    for name in named:
        yield from (f"{function}({name}={value})" for value in ("x", "None", "{**k}", "[*a]", "lambda: 0", "''", "-1"))
    for cut in range(len(call.args)):
        twin = copy.deepcopy(call)
        twin.args = twin.args[:cut]
        yield ast.unparse(twin)
        twin.keywords = []
        yield ast.unparse(twin)


def _imports(tree: ast.Module) -> str:
    return "\n".join(ast.unparse(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom))


def _summarized(code: str) -> None:
    assert summarize(parse(code, "a.py"), snippet=True).path == "a.py"


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.id)
def test_every_call_of_the_examples_is_read_in_every_shape(rule: Rule) -> None:
    for example in (rule.bad, rule.good):
        tree = ast.parse(example)
        shapes = {shape for node in ast.walk(tree) if isinstance(node, ast.Call) for shape in _shapes(node)}
        _summarized("\n".join((example, _imports(tree), *sorted(shapes))))


def _names() -> list[str]:
    """Everything that a table knows, by the name that it is called by."""
    checked = [f"{owner}.{last}" for last in weak.NAMES for owner in ("x", "Crypto.Cipher.AES", "ssl")]
    reached = [name if not name.startswith(".") else f"x{name}" for name in SINKS]
    return sorted({name.replace("[]", "[0]") for name in (*checked, *reached)})


_TOLD = _names()


@pytest.mark.parametrize("first", range(0, len(_TOLD), 100))
def test_every_name_of_a_table_is_read_with_arguments_of_every_form(first: int) -> None:
    lines = [f"{name}({arguments})" for name in _TOLD[first : first + 100] for arguments in _ODD]
    roots = sorted({name.partition(".")[0].partition("(")[0] for name in _TOLD[first : first + 100]} - {"x"})
    _summarized("\n".join((*(f"import {root}" for root in roots if root.isidentifier()), *lines)))


@pytest.mark.parametrize(
    "call", ["requests.request('GET', url=x)", "requests.get()", "open(*a)", "hashlib.md5(**k)", "yaml.load()"]
)
def test_a_call_is_read_in_every_place_of_the_grammar(call: str) -> None:
    _summarized("import requests, hashlib, yaml\n" + _STATEMENTS.format(call=call))
