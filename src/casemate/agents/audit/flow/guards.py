"""What a test shows about the values it tests: after `if name in ALLOWED`, `name` is one of a fixed set."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import replace

from casemate.agents.audit.checks.patterns import harmless_kinds
from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.scope import VERIFIED
from casemate.agents.audit.facts.syntax import place
from casemate.agents.audit.facts.values import Attribute, Value, merge
from casemate.agents.audit.flow.charsets import SAME_TEXT, bounds, none_of, subset, whole_text
from casemate.agents.audit.flow.prefixes import does_not_start, settle, starts, under_root
from casemate.agents.audit.flow.quantifiers import quantified
from casemate.agents.audit.sinks.cleaning import lacking, stays_here
from casemate.agents.audit.vocabulary.cleaners import NUMBER
from casemate.agents.audit.vocabulary.lexicon import EVERYTHING

_ALL = frozenset({EVERYTHING})
_TEXT_TESTS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("isdigit", "isdecimal", "isnumeric", "isalnum", "isalpha", "isidentifier"), NUMBER),
    "isprintable": frozenset({"log", "header"}),
}
_SCALARS = frozenset({"int", "float", "bool", "complex", "UUID", "Decimal", "date", "datetime"})
_URL_CHECKS = frozenset({"url_has_allowed_host_and_scheme", "is_safe_url"})
_HOST_KINDS = frozenset({"redirect", "ssrf"})


def refine(here: Point, test: ast.expr, *, outcome: bool) -> None:
    """Change what is known here to what holds when the test came out this way."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            refine(here, inner, outcome=not outcome)
        case ast.BoolOp(op=joint, values=parts):
            _several(here, parts, every=isinstance(joint, ast.And) == outcome, outcome=outcome)
        case ast.NamedExpr(target=ast.Name(), value=inner) | ast.Call(func=ast.Name(id="bool"), args=[inner]):
            refine(here, inner, outcome=outcome)
        case ast.Name(id=name):
            _remembered(here, name, outcome=outcome)
        case ast.Compare(ops=[_]):
            _comparison(here, test, outcome=outcome)
            bounds(here, test, outcome=outcome)
        case ast.Compare() if outcome:
            bounds(here, test, outcome=True)
        case ast.Call():
            _call(here, test, outcome=outcome)
        case ast.Attribute(attr="netloc" | "scheme" | "hostname") if not outcome:
            here.scope.clear_origins(here.value(test), {"redirect"})  # no host: the address stays on this site
        case ast.Attribute(attr="is_private" | "is_global" as shown, value=address) if outcome == (
            shown == "is_global"
        ):
            here.scope.clear_origins(here.value(address), {"ssrf"})
        case _:
            pass


def _several(here: Point, parts: list[ast.expr], *, every: bool, outcome: bool) -> None:
    if every:
        for part in parts:
            refine(here, part, outcome=outcome)
    else:
        _any_of(here, parts, outcome=outcome)


def _remembered(here: Point, name: str, *, outcome: bool) -> None:
    """`ok = test(x)`, and later `if ok:`, as long as neither has changed."""
    tests = here.scope.tests
    shown = tests.get(name)
    if shown is not None and shown.value is here.scope.values.get(name) and shown.holds(here.scope):
        here.scope.tests = {other: test for other, test in tests.items() if other != name}
        refine(here, shown.node, outcome=outcome)
        here.scope.tests = tests


def _any_of(here: Point, parts: list[ast.expr], *, outcome: bool) -> None:
    """One of several tests came out so: what all of them show holds."""
    ways = []
    for part in parts:
        way = here.scope.copy()
        refine(replace(here, scope=way), part, outcome=outcome)
        ways.append(way.values)
    for key, known in list(here.scope.values.items()):
        shown = [way.get(key, known) for way in ways]
        if known.taints and all(value is not known for value in shown):
            here.scope.values[key] = replace(known, taints=merge(*(value.taints for value in shown)))


def _comparison(here: Point, test: ast.Compare, *, outcome: bool) -> None:
    left, operator, right = test.left, test.ops[0], test.comparators[0]
    while isinstance(left, ast.NamedExpr):
        left = left.value
    match operator:
        case ast.In() | ast.NotIn() if outcome == isinstance(operator, ast.In):
            _member(here, left, other=right)
        case ast.In() | ast.NotIn():
            _lacks(here, right, missing=here.value(left).constant)
        case ast.Eq() | ast.NotEq() | ast.Is() | ast.IsNot() if outcome == isinstance(operator, ast.Eq | ast.Is):
            _equal(here, left, other=right)
            _equal(here, right, other=left)
            _empty_host(here, left, other=right)
            if isinstance(left, ast.Attribute):
                _empty_host(here, right, other=left)
            if isinstance(left, ast.Call):
                _common_path(here, left)
        case _:
            pass
    # `re.match(…) is None` and `is not None` say what the bare call says
    if isinstance(right, ast.Constant) and right.value is None and isinstance(left, ast.Call | ast.Name):
        refine(here, left, outcome=outcome == isinstance(operator, ast.IsNot | ast.NotEq))


def _member(here: Point, left: ast.expr, *, other: ast.expr) -> None:
    """`left in right`: safe if nothing untrusted is in the set; a text is no set."""
    container = here.value(other)
    tested = here.value(left)
    if isinstance(other, ast.Attribute) and other.attr == "parents":
        under_root(here, other.value)
        return
    if isinstance(container.constant, str):
        settle(here, left, kinds=lacking(container.constant))
        return
    untold = container.everything()
    if not untold:
        _accept(here, left, tested=tested)
    elif len(untold) == 1:
        (origin,) = untold
        if isinstance(origin, Attribute) and not origin.path:  # what lies there only the whole project tells
            settle(here, left, kinds={f"fixed:{origin.owner}:{origin.name}"})


def _lacks(here: Point, node: ast.expr, *, missing: object) -> None:
    """`'..' not in name`, `"'" not in name`: a text without what an attack of a kind begins with."""
    if missing in {"..", "../"}:
        here.scope.mark(place(node), here.value(node), mark="no-climb")
    elif missing == "'":
        settle(here, node, kinds={"xpath"})


def _equal(here: Point, left: ast.expr, *, other: ast.expr) -> None:
    fixed = here.value(other)
    if not isinstance(other, ast.Call | ast.Compare) and not fixed.everything() and fixed.constant is not None:
        _accept(here, left, tested=here.value(left))


def _empty_host(here: Point, left: ast.expr, *, other: ast.expr) -> None:
    """`urlparse(x).netloc == ''` and `== request.host` keep an address on this site."""
    tested = here.value(left)
    ours = isinstance(other, ast.Attribute) and other.attr in {"host", "netloc", "hostname"}
    if "host" in tested.marks and (ours or isinstance(other, ast.Constant)):
        here.scope.clear_origins(tested, {"redirect"} if ours else _HOST_KINDS)


def _accept(here: Point, node: ast.expr, *, tested: Value) -> None:
    if "host" in tested.marks:
        here.scope.clear_origins(tested, _HOST_KINDS)
    if "extension" in tested.marks:
        here.scope.clear_origins(tested, {"upload"})
    base = node
    while isinstance(base, ast.Call) and isinstance(base.func, ast.Attribute) and base.func.attr in SAME_TEXT:
        base = base.func.value
    if where := place(base):
        here.scope.clear(where, tested, kinds=_ALL)


def _common_path(here: Point, node: ast.Call) -> None:
    """`os.path.commonpath([ROOT, p]) == ROOT` with a normal path."""
    if here.value(node.func).name != "os.path.commonpath" or not node.args:
        return
    match node.args[0]:
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            for element in elements:
                under_root(here, element)


def _call(here: Point, node: ast.Call, *, outcome: bool) -> None:
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    _quantified(here, node, outcome=outcome)
    if not outcome:
        if method == "startswith":
            does_not_start(here, node)
        elif method == "search":
            none_of(here, node)
        return
    name = here.value(node.func).name
    last = name.rpartition(".")[2]
    rule = _CALL_GUARDS.get(last) or _CALL_GUARDS.get(getattr(node.func, "attr", ""))
    if rule is not None:
        rule(here, node)
    elif isinstance(node.func, ast.Attribute) and method in {*_TEXT_TESTS, "issubset"}:
        _of_text(here, node, tested=node.func)
    elif last in _URL_CHECKS:
        for tested in (*node.args[:1], *(keyword.value for keyword in node.keywords if keyword.arg == "url")):
            settle(here, tested, kinds={"redirect"})
    elif here.record.may_be_ours(name):
        _own(here, node, name=name)


def _of_text(here: Point, node: ast.Call, *, tested: ast.Attribute) -> None:
    if tested.attr in _TEXT_TESTS:
        whole_text(here, tested.value, kinds=_TEXT_TESTS[tested.attr])
    elif node.args:
        subset(here, tested.value, whole=node.args[0])


def _own(here: Point, node: ast.Call, *, name: str) -> None:
    """What a function of the project shows by being true is worked out when the project is linked."""
    given = [(str(index), argument) for index, argument in enumerate(node.args)]
    for at, argument in [*given, *((keyword.arg or "", keyword.value) for keyword in node.keywords)]:
        if at and here.value(argument).everything():
            settle(here, argument, kinds={f"guard:{name}:{at}"})


def _quantified(here: Point, node: ast.Call, *, outcome: bool) -> None:
    """`all(…)` that is true, `any(…)` that is not, over a comprehension."""
    if not (isinstance(node.func, ast.Name) and node.func.id == ("all" if outcome else "any") and len(node.args) == 1):
        return
    made = node.args[0]
    if isinstance(made, ast.GeneratorExp | ast.ListComp) and len(made.generators) == 1:
        inner = here.reader.iterated(made.generators, here.scope)
        refine(Point(here.reader, inner), made.elt, outcome=outcome)
        quantified(here, made, inner=inner)


def _pattern(here: Point, node: ast.Call) -> None:
    """`re.fullmatch(pattern, x)`, or the method of a compiled pattern."""
    name = here.value(node.func).name
    method = name.rpartition(".")[2]
    if name == f"re.{method}" and len(node.args) >= 2:
        pattern, tested = here.value(node.args[0]).constant, node.args[1]
    elif node.args and isinstance(node.func, ast.Attribute):
        pattern, tested = here.value(node.func.value).constant, node.args[0]
    else:
        return
    anchored = isinstance(pattern, str) and pattern.startswith(("^", r"\A"))
    if isinstance(pattern, str) and (method != "search" or anchored):
        kinds = harmless_kinds(pattern, whole=method == "fullmatch")
        if (method == "fullmatch" or pattern.endswith(("$", r"\Z"))) and stays_here(pattern):
            kinds |= {"redirect"}
        settle(here, tested, kinds=kinds)


def _instance(here: Point, node: ast.Call) -> None:
    if len(node.args) != 2:
        return
    kinds = node.args[1].elts if isinstance(node.args[1], ast.Tuple) else [node.args[1]]
    names = {here.value(kind).name.rpartition(".")[2] for kind in kinds}
    if names and names <= _SCALARS:
        settle(here, node.args[0], kinds=NUMBER)
    elif "str" in names:
        settle(here, node.args[0], kinds={"nosql"})


def _relative(here: Point, node: ast.Call) -> None:
    """`p.is_relative_to(ROOT)` with a resolved path."""
    if isinstance(node.func, ast.Attribute):
        under_root(here, node.func.value)


def _extension(here: Point, node: ast.Call) -> None:
    """`name.endswith((".png", ".jpg"))` decides what may be uploaded; `host.endswith(".example.com")`, who is asked."""
    if not isinstance(node.func, ast.Attribute):
        return
    tested, ending = here.value(node.func.value), here.value(node.args[0]) if node.args else Value()
    here.scope.clear_origins(tested, {"upload"})
    endings = [ending.constant, *(item.constant for item in (ending.items or {}).values())]
    told = [text for text in endings if isinstance(text, str)]
    if "host" in tested.marks and told and all(text.startswith(".") for text in told):
        here.scope.clear_origins(tested, _HOST_KINDS)


def _found(here: Point, node: ast.Call) -> None:
    """`Member.objects.filter(user=…, team=x).exists()`: no longer the client's word alone."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.keyword):
            settle(here, inner.value, kinds={"session", "authority"})


def _signature(here: Point, node: ast.Call) -> None:
    """`hmac.compare_digest(sent, ours)`: what was signed comes from who holds the key."""
    del node
    scope = here.scope
    scope.bind(VERIFIED, Value())
    for key, known in list(scope.values.items()):
        if known.taints:
            scope.values[key] = known.clear({"object"})


_CALL_GUARDS: Mapping[str, Callable[[Point, ast.Call], None]] = {
    "fullmatch": _pattern,
    "match": _pattern,
    "search": _pattern,
    "isinstance": _instance,
    "startswith": starts,
    "endswith": _extension,
    "is_relative_to": _relative,
    "compare_digest": _signature,
    "exists": _found,
}
