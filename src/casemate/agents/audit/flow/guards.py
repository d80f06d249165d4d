"""What a test shows about the values it tests: after `if name in ALLOWED`, `name` is one of a fixed set."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping

from casemate.agents.audit.checks.patterns import harmless_kinds
from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.syntax import place
from casemate.agents.audit.facts.values import Value
from casemate.agents.audit.vocabulary.lexicon import EVERYTHING

_ALL = frozenset({EVERYTHING})
_WHOLE_TEXT = frozenset({"isdigit", "isdecimal", "isnumeric", "isalnum", "isalpha", "isidentifier"})
_SCALARS = frozenset({"int", "float", "bool", "complex", "UUID", "Decimal", "date", "datetime"})
_URL_CHECKS = frozenset({"url_has_allowed_host_and_scheme", "is_safe_url"})
_HOST_KINDS = frozenset({"redirect", "ssrf"})


def refine(here: Point, test: ast.expr, *, outcome: bool) -> None:
    """Change what is known here to what holds when the test came out this way."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            refine(here, inner, outcome=not outcome)
        case ast.BoolOp(op=ast.And(), values=parts) if outcome:
            for part in parts:
                refine(here, part, outcome=True)
        case ast.BoolOp(op=ast.Or(), values=parts) if not outcome:
            for part in parts:
                refine(here, part, outcome=False)
        case ast.NamedExpr(target=ast.Name(), value=inner):
            refine(here, inner, outcome=outcome)
        case ast.Compare(ops=[_]):
            _comparison(here, test, outcome=outcome)
        case ast.Call():
            _call(here, test, outcome=outcome)
        case ast.Attribute(attr="netloc" | "scheme" | "hostname") if not outcome:
            here.scope.clear_origins(here.value(test), {"redirect"})  # no host: the address stays on this site
        case _:
            pass


def _comparison(here: Point, test: ast.Compare, *, outcome: bool) -> None:
    left, operator, right = test.left, test.ops[0], test.comparators[0]
    match operator:
        case ast.In() | ast.NotIn() if outcome == isinstance(operator, ast.In):
            _member(here, left, other=right)
        case ast.Eq() | ast.NotEq() | ast.Is() | ast.IsNot() if outcome == isinstance(operator, ast.Eq | ast.Is):
            _equal(here, left, other=right)
            _equal(here, right, other=left)
            _empty_host(here, left, other=right)
            if isinstance(left, ast.Call):
                _common_path(here, left)
        case _:
            pass
    # `re.match(…) is None` and `is not None` say what the bare call says
    if isinstance(right, ast.Constant) and right.value is None and isinstance(left, ast.Call):
        _call(here, left, outcome=outcome == isinstance(operator, ast.IsNot | ast.NotEq))


def _member(here: Point, left: ast.expr, *, other: ast.expr) -> None:
    """`left in right`: safe if nothing untrusted is in the set; a text is no set."""
    container = here.value(other)
    tested = here.value(left)
    if isinstance(other, ast.Attribute) and other.attr == "parents":
        _under_root(here, other.value)
        return
    if not container.everything() and not isinstance(container.constant, str):
        _accept(here, left, tested=tested)


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
    while (
        isinstance(base, ast.Call)
        and isinstance(base.func, ast.Attribute)
        and base.func.attr in {"lower", "upper", "strip", "casefold"}
    ):
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
                _under_root(here, element)


def _under_root(here: Point, node: ast.expr) -> None:
    """A normal path was found to lie under a root."""
    if "normal" in here.value(node).marks:
        _clear(here, node, kinds={"path"})


def _clear(here: Point, node: ast.expr, *, kinds: Iterable[str]) -> None:
    """What stands here is harmless for these kinds, if it can be named again."""
    if where := place(node):
        here.scope.clear(where, here.value(node), kinds=kinds)


def _call(here: Point, node: ast.Call, *, outcome: bool) -> None:
    if not outcome:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "startswith":
            _does_not_start(here, node)
        return
    name = here.value(node.func).name
    last = name.rpartition(".")[2]
    rule = _CALL_GUARDS.get(last) or _CALL_GUARDS.get(getattr(node.func, "attr", ""))
    if rule is not None:
        rule(here, node)
    elif isinstance(node.func, ast.Attribute) and node.func.attr in _WHOLE_TEXT:
        _clear(here, node.func.value, kinds=_ALL)
    elif last in _URL_CHECKS and node.args:
        _clear(here, node.args[0], kinds={"redirect"})
    elif here.record.may_be_ours(name):
        for index, argument in enumerate(node.args):
            if here.value(argument).everything():
                _clear(here, argument, kinds={f"guard:{name}:{index}"})


def _pattern(here: Point, node: ast.Call) -> None:
    """`re.fullmatch(pattern, x)`, or the method of a compiled pattern."""
    if not isinstance(node.func, ast.Attribute):
        return
    owner = here.value(node.func.value)
    if owner.name == "re" and len(node.args) >= 2:
        pattern, tested = here.value(node.args[0]).constant, node.args[1]
    elif node.args:
        pattern, tested = owner.constant, node.args[0]
    else:
        return
    anchored = isinstance(pattern, str) and pattern.startswith(("^", r"\A"))
    if isinstance(pattern, str) and (node.func.attr != "search" or anchored):
        kinds = harmless_kinds(pattern, whole=node.func.attr == "fullmatch")
        _clear(here, tested, kinds=kinds)


def _instance(here: Point, node: ast.Call) -> None:
    if len(node.args) != 2:
        return
    kinds = node.args[1].elts if isinstance(node.args[1], ast.Tuple) else [node.args[1]]
    names = {here.value(kind).name.rpartition(".")[2] for kind in kinds}
    if names and names <= _SCALARS:
        _clear(here, node.args[0], kinds=_ALL)
    elif "str" in names:
        _clear(here, node.args[0], kinds={"nosql"})


def _starts(here: Point, node: ast.Call) -> None:
    """A prefix test: of a normal path with its separator, or of an address with its whole host."""
    if not isinstance(node.func, ast.Attribute) or not node.args:
        return
    tested, prefix = node.func.value, here.value(node.args[0])
    if _ends_with_separator(node.args[0], prefix):
        _under_root(here, tested)
    if not isinstance(prefix.constant, str):
        return
    if prefix.constant.startswith(("http://", "https://")) and prefix.constant.count("/") >= 3:
        _clear(here, tested, kinds=_HOST_KINDS)
    elif prefix.constant == "/":
        _both(here, tested, found="starts-with-slash", other="no-second-slash")


def _does_not_start(here: Point, node: ast.Call) -> None:
    if not isinstance(node.func, ast.Attribute) or not node.args:
        return
    prefix = here.value(node.args[0])
    prefixes = [prefix.constant, *(item.constant for item in (prefix.items or {}).values())]
    if "//" in prefixes:
        _both(here, node.func.value, found="no-second-slash", other="starts-with-slash")


def _both(here: Point, node: ast.expr, *, found: str, other: str) -> None:
    """Two tests that only together mean something: `/x` and not `//x`."""
    value = here.value(node)
    if other in value.marks:
        _clear(here, node, kinds={"redirect"})
    else:
        here.scope.mark(place(node), value, mark=found)


def _ends_with_separator(node: ast.expr, prefix: Value) -> bool:
    if isinstance(prefix.constant, str):
        return prefix.constant.endswith(("/", "\\"))
    match node:
        case (
            ast.BinOp(op=ast.Add(), right=ast.Constant(value="/" | "\\"))
            | ast.BinOp(op=ast.Add(), right=ast.Attribute(attr="sep"))
        ):
            return True
        case ast.JoinedStr(values=[*_, ast.Constant(value=str(text))]):
            return text.endswith("/")
        case ast.JoinedStr(values=[*_, ast.FormattedValue(value=ast.Attribute(attr="sep"))]):
            return True
        case ast.Call(func=ast.Attribute(attr="join"), args=[_, ast.Constant(value="")]):
            return True
        case _:
            return False


def _relative(here: Point, node: ast.Call) -> None:
    """`p.is_relative_to(ROOT)` with a resolved path."""
    if isinstance(node.func, ast.Attribute):
        _under_root(here, node.func.value)


def _extension(here: Point, node: ast.Call) -> None:
    """`name.endswith((".png", ".jpg"))` decides what may be uploaded."""
    if isinstance(node.func, ast.Attribute):
        here.scope.clear_origins(here.value(node.func.value), {"upload"})


_CALL_GUARDS: Mapping[str, Callable[[Point, ast.Call], None]] = {
    "fullmatch": _pattern,
    "match": _pattern,
    "search": _pattern,
    "isinstance": _instance,
    "startswith": _starts,
    "endswith": _extension,
    "is_relative_to": _relative,
}
