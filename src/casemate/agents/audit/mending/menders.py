"""Edits that repair a weak place, one function a rule. Each is sure or proposes nothing. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from casemate.agents.audit.facts.syntax import Source
from casemate.agents.audit.flow import bound
from casemate.agents.audit.mending.edits import Edit, parents

_PERCENT_DRIVERS = frozenset(
    {"psycopg2", "psycopg", "pymysql", "MySQLdb", "mysql", "django", "asyncmy", "aiomysql", "pg8000"}
)
_SHELL_SYNTAX = re.compile(r"[|&;<>()$`\\\"'*?\[\]#~!{}\n]")
_QUERY_METHODS = frozenset({"execute", "executemany"})


@dataclass(frozen=True, slots=True)
class Site:
    """Where a finding stands: its node, its file, and what imported names stand for."""

    node: ast.expr | ast.keyword
    source: Source
    names: Mapping[str, str]

    def edit(self, node: ast.AST, text: str) -> Edit:
        """New text for a node."""
        return Edit(self.source.location(node), text)

    def text(self, node: ast.AST) -> str:
        """A node's source text."""
        return self.source.text(self.source.location(node))

    def imports(self, package: str) -> bool:
        """Whether the file imports a top-level package under its own name."""
        return self.names.get(package) == package


Mender = Callable[[Site], list[Edit]]


def _bind_values(site: Site) -> list[Edit]:
    """`execute("… = " + x)` becomes `execute("… = ?", (x,))`, also where the text was put in a variable first."""
    call = site.node
    if (
        not isinstance(call, ast.Call)
        or not isinstance(call.func, ast.Attribute)
        or call.func.attr not in _QUERY_METHODS
    ):
        return []
    if len(call.args) != 1 or call.keywords:
        return []
    query = call.args[0]
    built = _only_assignment(site, query) if isinstance(query, ast.Name) else query
    form = bound.statement(built, _placeholder(site)) if built is not None else None
    if form is None or built is None:
        return []
    shown = [site.text(value) if hasattr(value, "lineno") else ast.unparse(value) for value in form.values]
    values = f"({', '.join(shown)}{',' if len(shown) == 1 else ''})"
    template = _literal(form.template)
    if isinstance(query, ast.Name):
        return [site.edit(built, template), site.edit(query, f"{query.id}, {values}")]
    return [site.edit(query, f"{template}, {values}")]


def _only_assignment(site: Site, name: ast.Name) -> ast.expr | None:
    """The one value that a local name has, if it is assigned once, right where it is used."""
    above = parents(site.source.tree)
    around: ast.AST = name
    while not isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
        around = above[around]
    stores = [
        node for node in ast.walk(around) if isinstance(node, ast.Name) and node.id == name.id and node is not name
    ]
    if len(stores) != 1:
        return None
    statement = above[stores[0]]
    return statement.value if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None


def _placeholder(site: Site) -> str:
    roots = {dotted.partition(".")[0] for dotted in site.names.values()}
    return "%s" if roots & _PERCENT_DRIVERS and "sqlite3" not in roots else "?"


def _literal(text: str) -> str:
    if "\n" in text:
        return '"""' + text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"') + '"""'
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _without_shell(site: Site) -> list[Edit]:
    """A command text with whole words between spaces becomes a list, and the shell goes."""
    call = site.node
    if not isinstance(call, ast.Call) or not call.args:
        return []
    shell = next((keyword for keyword in call.keywords if keyword.arg == "shell"), None)
    words = _words(site, call.args[0])
    if shell is None or not words:
        return []
    return [site.edit(call.args[0], f"[{', '.join(words)}]"), *_removed(site, shell, call=call)]


def _words(site: Site, node: ast.expr) -> list[str]:
    parts = [*_flat(node)]
    words: list[str] = []
    open_word = False
    for part in parts:
        if isinstance(part, str):
            if _SHELL_SYNTAX.search(part):
                return []
            pieces = part.split()
            if (open_word and part[:1].strip()) or (pieces and part[-1:].strip() and part is not parts[-1]):
                return []
            words += [_literal(piece) for piece in pieces]
            open_word = False
        elif part is None or open_word:
            return []
        else:
            words.append(site.text(part))
            open_word = True
    return words if len(words) > 1 and words[0].startswith('"') else []


def _flat(node: ast.expr) -> list[str | ast.expr | None]:
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=values):
            return [part for value in values for part in _flat(value)]
        case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
            return [value]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [*_flat(left), *_flat(right)]
        case ast.Name() | ast.Attribute() | ast.Subscript():
            return [node]
        case _:
            return [None]


def _removed(site: Site, keyword: ast.keyword, *, call: ast.Call) -> list[Edit]:
    """An argument taken out together with the comma before it."""
    where = site.source.location(keyword)
    before: list[ast.expr | ast.keyword] = [*call.args, *(other for other in call.keywords if other is not keyword)]
    earlier = [node for node in before if (node.lineno, node.col_offset) < (keyword.lineno, keyword.col_offset)]
    if earlier:
        start = site.source.location(max(earlier, key=lambda node: (node.lineno, node.col_offset)))
        location = type(where)(where.path, start.end_line, start.end_column, where.end_line, where.end_column)
        return [Edit(location, "")]
    later = [node for node in before if node not in earlier]
    if not later:
        return [Edit(where, "")]
    stop = site.source.location(min(later, key=lambda node: (node.lineno, node.col_offset)))
    return [Edit(type(where)(where.path, where.line, where.column, stop.line, stop.column), "")]


def _drop(*names: str) -> Mender:
    """Take these keywords out of the call."""

    def mender(site: Site) -> list[Edit]:
        call = site.node
        if not isinstance(call, ast.Call):
            return _flip(site)
        found = [keyword for keyword in call.keywords if keyword.arg in names]
        return _removed(site, found[0], call=call) if len(found) == 1 else []

    return mender


def _flip(site: Site) -> list[Edit]:
    """`NAME = False` becomes `NAME = True`, and the other way round; also as a keyword."""
    node = site.node
    value = node.value if isinstance(node, ast.keyword) else None
    if value is None:
        statement = parents(site.source.tree).get(node)
        value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
    if not isinstance(value, ast.Constant) or not isinstance(value.value, bool):
        return []
    return [site.edit(value, str(not value.value))]


def _add(name: str) -> Mender:
    """Set a flag of the call, or turn it on."""

    def mender(site: Site) -> list[Edit]:
        call = site.node
        if not isinstance(call, ast.Call):
            return _flip(site)
        given = next((keyword for keyword in call.keywords if keyword.arg == name), None)
        if given is not None:
            return [site.edit(given.value, "True")]
        last: list[ast.AST] = [*call.args, *call.keywords]
        return [site.edit(last[-1], f"{site.text(last[-1])}, {name}=True")] if last else []

    return mender


def _safe_load(site: Site) -> list[Edit]:
    call = site.node
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or not call.args:
        return []
    if call.func.attr not in {"load", "load_all", "unsafe_load", "unsafe_load_all"} or not site.imports("yaml"):
        return []
    twin = "safe_load_all" if call.func.attr.endswith("_all") else "safe_load"
    return [site.edit(call, f"{site.text(call.func.value)}.{twin}({site.text(call.args[0])})")]


def _stronger_hash(site: Site) -> list[Edit]:
    """SHA-256 instead, except for passwords: they need a slow hash, not another fast one."""
    call = site.node
    if not isinstance(call, ast.Call) or re.search(r"passw|pwd|passphrase", site.text(call), re.IGNORECASE):
        return []
    if (
        isinstance(call.func, ast.Attribute)
        and site.text(call.func.value) == "hashlib"
        and call.func.attr in {"md5", "sha1"}
    ):
        return [site.edit(call.func, "hashlib.sha256")]
    return []


def _system_random(site: Site) -> list[Edit]:
    call = site.node
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and site.text(call.func.value) == "random":
        return [site.edit(call.func, f"random.SystemRandom().{call.func.attr}")]
    return []


def _constant_time(site: Site) -> list[Edit]:
    node = site.node
    if not isinstance(node, ast.Compare) or not site.imports("hmac"):
        return []
    negated = "not " if isinstance(node.ops[0], ast.NotEq) else ""
    return [site.edit(node, f"{negated}hmac.compare_digest({site.text(node.left)}, {site.text(node.comparators[0])})")]


def _filtered(site: Site) -> list[Edit]:
    call = site.node
    if not isinstance(call, ast.Call):
        return []
    last: list[ast.AST] = [*call.args, *call.keywords]
    if not last:
        return [site.edit(call, f'{site.text(call.func)}(filter="data")')]
    return [site.edit(last[-1], f'{site.text(last[-1])}, filter="data"')]


def _entities_off(site: Site) -> list[Edit]:
    call = site.node
    if not isinstance(call, ast.Call):
        return []
    safe = {"resolve_entities": "False", "no_network": "True", "load_dtd": "False"}
    return [site.edit(keyword.value, safe[keyword.arg]) for keyword in call.keywords if keyword.arg in safe]


MENDERS: Mapping[str, Mender] = {
    "sql-injection": _bind_values,
    "command-injection": _without_shell,
    "unsafe-deserialization": _safe_load,
    "xml-external-entity": _entities_off,
    "weak-hash": _stronger_hash,
    "weak-randomness": _system_random,
    "timing-comparison": _constant_time,
    "certificate-not-verified": _drop("verify", "verify_ssl", "ssl"),
    "debug-enabled": _drop("debug"),
    "cookie-without-secure": _add("secure"),
    "cookie-without-httponly": _add("httponly"),
    "csrf-protection-off": _flip,
    "archive-traversal": _filtered,
}
