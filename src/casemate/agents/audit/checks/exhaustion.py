"""Checks of what a stranger can use up: numbers that decide sizes and times, data that unpacks to any length."""

from __future__ import annotations

import ast
import re

from casemate.agents.audit.checks.meaning import meanings
from casemate.agents.audit.facts.definitions import name_of
from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.record import Record
from casemate.agents.audit.facts.sink import Invocation, Sink
from casemate.agents.audit.facts.values import NOTHING, UNKNOWN, Value, gather
from casemate.finding import Confidence

_AMOUNT = Sink("unlimited-allocation", "amount", confidence=Confidence.MEDIUM)
_SIZE = Sink("unlimited-decompression", "size", confidence=Confidence.MEDIUM)
_BY_NUMBER = {
    "bytearray": (0,),
    "bytes": (0,),
    "sleep": (0,),
    "zeros": (0,),
    "ones": (0,),
    "empty": (0,),
    "full": (0,),
    "urandom": (0,),
    "token_bytes": (0,),
    "token_hex": (0,),
    "token_urlsafe": (0,),
    "randbytes": (0,),
    "ljust": (0,),
    "rjust": (0,),
    "zfill": (0,),
    "center": (0,),
    "factorial": (0,),
    "repeat": (1,),
    "read": (0,),
    "readexactly": (0,),
    "recv": (0,),
    "ThreadPoolExecutor": (0,),
    "ProcessPoolExecutor": (0,),
    "Semaphore": (),
}
_KEYWORDS = ("k", "max_workers", "count", "times", "size", "length", "per_page", "nbytes")
_PAGES = ("limit", "paginate")
_LIBRARY_ONLY = {
    "zeros": ("numpy", "np", "torch"),
    "ones": ("numpy", "np", "torch"),
    "empty": ("numpy", "np", "torch"),
    "full": ("numpy", "np", "torch"),
    "sleep": ("time", "asyncio", "trio", "anyio", "gevent", "sleep", "eventlet"),
    "repeat": ("itertools", "repeat", "timeit"),
    "bytearray": ("bytearray",),
    "bytes": ("bytes",),
}
_UNPACK = re.compile(r"^(?:zlib|gzip|bz2|lzma|brotli|zstandard|snappy|lz4\.frame)\.decompress$")
_MEMBERS = re.compile(
    r"^(?:zipfile\.ZipFile|gzip\.GzipFile|gzip\.open|bz2\.BZ2File|bz2\.open|lzma\.open|lzma\.LZMAFile)\(\)"
)


def repeated(record: Record, node: ast.BinOp, *, left: Value, right: Value) -> None:
    """`"x" * number`, `[0] * number`: a text or list as long as somebody says."""
    for whole, number in ((left, right), (right, left)):
        if isinstance(whole.constant, str | bytes) or (whole.items is not None and whole.constant is UNKNOWN):
            record.sink(_AMOUNT, node, reached=number)
            return
    for part, number in ((node.left, right), (node.right, left)):
        if number.taints and _is_text(record, part):
            record.sink(_AMOUNT, node, reached=number)


def members(record: Record, node: ast.expr) -> tuple[Value, ...]:
    """Unpackers in a table of functions from which a stranger may choose (`DECODERS[encoding]`)."""
    table = node.value if isinstance(node, ast.Subscript) else None
    known = meanings(record, table)[:1] if table is not None else ()
    return tuple(item for value in known for item in (value.items or {}).values() if _UNPACK.match(item.name))


def _is_text(record: Record, node: ast.expr, *, depth: int = 0) -> bool:
    """Whether an expression is a text or a list by its look."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, str | bytes)
        case ast.List() | ast.JoinedStr():
            return True
        case ast.BinOp(left=left, right=right):
            return _is_text(record, left, depth=depth) or _is_text(record, right, depth=depth)
        case ast.Call(func=function):
            return name_of(function) in {"bytes", "bytearray", "str", "chr", "join", "encode", "to_bytes", "pack"}
        case ast.Name(id=name) if depth < 3:
            bindings = record.definitions.bindings.get(name, [])
            return bool(bindings) and all(_is_text(record, b.value, depth=depth + 1) for b in bindings)
        case _:
            return False


def _number(here: Point, invocation: Invocation) -> None:
    """A call that takes as much as it is told."""
    last = invocation.name.rpartition(".")[2]
    owners = _LIBRARY_ONLY.get(last)
    if owners is not None and invocation.name.partition(".")[0] not in owners:
        return
    given = [invocation.argument(position) for position in _BY_NUMBER[last]]
    given += [invocation.keywords.get(key, NOTHING) for key in _KEYWORDS]
    numbers = [value for value in given if value.items is None]
    here.record.sink(_AMOUNT, invocation.node, reached=gather(*numbers))


def _range(here: Point, invocation: Invocation) -> None:
    """`range(n)`, `range(first, end)`; of `range(first, first + n)` only `n` says how many."""
    if invocation.name != "range":
        return
    first, end = invocation.written(0), invocation.written(1)
    many = invocation.argument(0 if end is None else 1)
    match end:
        case ast.BinOp(left=left, op=ast.Add(), right=right) if first is not None:
            same = [part for part in (left, right) if ast.dump(part) == ast.dump(first)]
            many = here.value(right if same[:1] == [left] else left) if same else many
    here.record.sink(_AMOUNT, invocation.node, reached=many)


def _page(here: Point, invocation: Invocation) -> None:
    """A page of rows as long as somebody says."""
    if isinstance(invocation.node.func, ast.Attribute):
        given = (invocation.argument(0), invocation.keywords.get("per_page", NOTHING))
        here.record.sink(_AMOUNT, invocation.node, reached=gather(*given))


def _chosen(here: Point, invocation: Invocation) -> None:
    if invocation.name.startswith(("random.", "secrets.")):
        here.record.sink(_AMOUNT, invocation.node, reached=invocation.keywords["k"])


def _unpack(here: Point, invocation: Invocation) -> None:
    """One call that unpacks all there is."""
    if _UNPACK.match(invocation.name):
        here.record.sink(_SIZE, invocation.node, reached=invocation.argument(0))


def _member(here: Point, invocation: Invocation) -> None:
    """A member of an archive read whole, in a function that never asks how large it is."""
    whole = not invocation.args or invocation.name == "zipfile.ZipFile().read"  # any other `read` is told how much
    if not whole or not _MEMBERS.match(invocation.name):
        return
    function = here.record.definitions.around(invocation.node.lineno)
    text = ast.unparse(function) if function is not None else ""
    if "file_size" not in text:
        here.record.sink(_SIZE, invocation.node, reached=invocation.receiver)


TABLES = (
    dict.fromkeys(_BY_NUMBER, _number),
    {"range": _range},
    dict.fromkeys(_PAGES, _page),
    {"decompress": _unpack, "read": _member},
)
KEYWORDS = ({"k": _chosen},)
