"""What the product must not contain, found in its syntax: each yields the places (`path:line`)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from house.source import Source, at

_UNSAFE_MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "imp", "telnetlib"}
_UNSAFE_CALLS = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "tempfile.mktemp", "yaml.load"}
_SWITCHED_OFF = {"verify": False, "autoescape": False}
_SWITCHED_ON = {"shell": True, "allow_pickle": True, "trust_remote_code": True}
_UNSAFE_SWITCHES = _SWITCHED_OFF | _SWITCHED_ON
_REMOTE_CODE = ("trust_remote_code", "trust-remote-code")
_EVERYWHERE = {"0.0.0.0", "::"}


def unsafe_modules(source: Source) -> Iterator[str]:
    """An import of a deserialiser that runs code, or of a protocol without encryption."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and _UNSAFE_MODULES & set(_roots(node)):
            yield at(source, node)


def code_from_data(source: Source) -> Iterator[str]:
    """A call that turns text into code or a shell line."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in _UNSAFE_CALLS:
            yield at(source, node)


def unsafe_switches(source: Source) -> Iterator[str]:
    """A keyword that turns a protection off: shell=True, verify=False, autoescape=False and their like."""
    for node in ast.walk(source.tree):
        if not (isinstance(node, ast.keyword) and isinstance(node.value, ast.Constant)):
            continue
        if node.arg in _UNSAFE_SWITCHES and node.value.value is _UNSAFE_SWITCHES[node.arg]:
            yield at(source, node)


def remote_code(source: Source) -> Iterator[str]:
    """The flag that runs a model folder's own code, in any text but a docstring."""
    for node in _constants(source):
        if any(word in str(node.value) for word in _REMOTE_CODE):
            yield at(source, node)


def open_doors(source: Source) -> Iterator[str]:
    """An address that listens on every interface."""
    for node in _constants(source):
        if node.value in _EVERYWHERE:
            yield at(source, node)


def _roots(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [(node.module or "").partition(".")[0]]
    return [alias.name.partition(".")[0] for alias in node.names]


def _constants(source: Source) -> Iterator[ast.Constant]:
    bare = {id(node.value) for node in ast.walk(source.tree) if isinstance(node, ast.Expr)}  # docstrings
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            yield node
