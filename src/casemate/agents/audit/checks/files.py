"""Checks of files that a program makes: names that can be guessed, rights for everybody, a test before the use."""

from __future__ import annotations

import ast
import re

from casemate.agents.audit.checks.purpose import named
from casemate.agents.audit.checks.words import words
from casemate.agents.audit.facts.definitions import name_of
from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.sink import Invocation
from casemate.agents.audit.facts.values import NOTHING, Value
from casemate.finding import Confidence

_SHARED = re.compile(r"^(?:/tmp|/var/tmp|/dev/shm)(?:/|$)")
_UNGUESSED = frozenset({"uuid4", "token_hex", "token_urlsafe", "mkdtemp", "mkstemp", "token_bytes", "urandom"})
_WRITES = re.compile(r"[wa]")
_WORLD_WRITABLE = 0o002
_WORLD_READABLE = 0o004
_WORLD_NAMES = re.compile(r"S_IRWXO|S_IWOTH|S_IRWXU\s*\|\s*stat\.S_IRWXG\s*\|\s*stat\.S_IRWXO")
_READ_NAMES = re.compile(r"S_IROTH")
_PRIVATE = frozenset(
    {"key", "secret", "secrets", "password", "passwd", "token", "credentials", "pem", "private", "shadow"}
)
_PRIVATE |= {"keyfile", "credential", "tokens", "keys", "passwords"}
_PUBLIC = frozenset({"public", "pub", "name", "names"})


def _unsafe_name(here: Point, invocation: Invocation) -> None:
    prefix = invocation.written(1, "prefix")
    pipe = prefix is not None and "pipe" in ast.unparse(prefix)  # the name of a pipe of Windows, which is no file
    if invocation.name in {"tempfile.mktemp", "os.tempnam", "os.tmpnam"} and not pipe:
        here.record.weak("insecure-temporary-file", invocation.node)


def _open(here: Point, invocation: Invocation) -> None:
    """A fixed name in a folder that everybody may write to, opened for writing."""
    if invocation.name not in {"open", "io.open", "codecs.open", "builtins.open", "aiofiles.open"}:
        return
    mode = invocation.argument(1, "mode").constant
    if isinstance(mode, str) and _WRITES.search(mode) and _is_shared(here, invocation.node.args[:1]):
        here.record.weak("insecure-temporary-file", invocation.node, confidence=Confidence.MEDIUM)


def _write(here: Point, invocation: Invocation) -> None:
    function = invocation.node.func
    if isinstance(function, ast.Attribute) and _is_shared(here, [function.value]):
        here.record.weak("insecure-temporary-file", invocation.node, confidence=Confidence.MEDIUM)


def _make(here: Point, invocation: Invocation) -> None:
    """A folder or a log at a fixed name there."""
    library = invocation.name.startswith(("os.", "logging.", "shutil."))
    nodes = invocation.node.args[1:2] if invocation.name.startswith("shutil.") else invocation.node.args[:1]
    if library and _is_shared(here, nodes):
        here.record.weak("insecure-temporary-file", invocation.node, confidence=Confidence.MEDIUM)


def _is_shared(here: Point, nodes: list[ast.expr]) -> bool:
    """Whether a path lies in a shared folder under a name that can be guessed, as far as the source tells."""
    waiting = list(nodes)
    if any(isinstance(text := here.value(node).constant, str) and _is_shared_text(text) for node in nodes):
        return True
    for _ in range(3):
        if any(name_of(n) in _UNGUESSED for node in waiting for n in ast.walk(node)):
            return False
        if any(_starts_shared(node) for node in waiting):
            return True
        names = [n.id for node in waiting for n in ast.walk(node) if isinstance(n, ast.Name)]
        waiting = [b.value for name in names for b in here.record.definitions.bindings.get(name, [])][:8]
    return False


def _is_shared_text(text: str) -> bool:
    return bool(_SHARED.match(text)) and text.count("/") > 1 and not text.endswith("/")


def _starts_shared(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=str(text)):
            return _is_shared_text(text)
        case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
            return bool(_SHARED.match(text))
        case ast.BinOp(left=left, op=ast.Add() | ast.Mod() | ast.Div()):
            return _is_shared_root(left)
        case ast.Call(func=function, args=[first, *_]) if name_of(function) in {"join", "Path", "PurePath"}:
            return _is_shared_root(first)
        case _:
            return False


def _is_shared_root(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=str(text)):
            return bool(_SHARED.match(text))
        case ast.Call(func=function, args=args):
            inner = bool(args) and name_of(function) in {"Path", "PurePath"} and _is_shared_root(args[0])
            return name_of(function) == "gettempdir" or inner
        case ast.BinOp(left=left):
            return _is_shared_root(left)
        case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
            return bool(_SHARED.match(text))
        case _:
            return False


def _chmod(here: Point, invocation: Invocation) -> None:
    of_module = invocation.name.startswith("os.")
    mode = invocation.argument(1 if of_module else 0, "mode")
    nodes = [*invocation.node.args, *(k.value for k in invocation.node.keywords)]
    shown = " ".join(ast.unparse(node) for node in nodes)
    what = nodes[:1] if of_module else [invocation.node.func]
    if _gives(mode, _WORLD_WRITABLE) or _WORLD_NAMES.search(shown):
        here.record.weak("world-writable-file", invocation.node)
    elif (_gives(mode, _WORLD_READABLE) or _READ_NAMES.search(shown)) and _is_private(what):
        here.record.weak("world-writable-file", invocation.node, confidence=Confidence.MEDIUM)


def _os_open(here: Point, invocation: Invocation) -> None:
    """`os.open(path, O_CREAT, 0o666)`; without a mode it is 0o777."""
    if invocation.name not in {"os.open", "os.mkfifo", "os.mknod"}:
        return
    mode = invocation.argument(2 if invocation.name == "os.open" else 1, "mode")
    private = _is_private(invocation.node.args[:1])
    creates = any("O_CREAT" in ast.unparse(node) for node in invocation.node.args[1:2])
    everything = _gives(mode, _WORLD_WRITABLE) and _gives(mode, 0o111)  # 0o666 is what `open` itself asks for
    if everything or (private and (_gives(mode, _WORLD_READABLE) or (creates and mode is NOTHING))):
        here.record.weak("world-writable-file", invocation.node, confidence=Confidence.MEDIUM)


def _mkdir(here: Point, invocation: Invocation) -> None:
    of_module = invocation.name.startswith("os.")
    mode = invocation.argument(1 if of_module else 0, "mode")
    written = [
        *invocation.node.args[1 if of_module else 0 :],
        *(k.value for k in invocation.node.keywords if k.arg == "mode"),
    ]
    literal = any(isinstance(node, ast.Constant) for node in written)
    if literal and _gives(mode, _WORLD_WRITABLE) and not _gives(mode, 0o1000):
        here.record.weak("world-writable-file", invocation.node, confidence=Confidence.MEDIUM)


def _umask(here: Point, invocation: Invocation) -> None:
    mask = invocation.argument(0, "mask").constant
    if (
        invocation.name == "os.umask"
        and type(mask) is int
        and not mask & _WORLD_WRITABLE
        and not _is_restored(here, invocation)
    ):
        here.record.weak("world-writable-file", invocation.node, confidence=Confidence.MEDIUM)


def _is_restored(here: Point, invocation: Invocation) -> bool:
    """`mask = os.umask(0)` and at once `os.umask(mask)`, the only way to ask for it."""
    line = invocation.node.lineno
    others = (other for other, _ in here.record.definitions.callers.get("umask", []))
    return any(0 < other.lineno - line <= 1 for other in others)


def _gives(mode: Value, right: int) -> bool:
    return type(mode.constant) is int and bool(mode.constant & right)


def _is_private(nodes: list[ast.expr]) -> bool:
    said: set[str] = set()
    for node in nodes:
        said |= named(node)
        for inner in ast.walk(node):
            if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                said |= words(inner.value)
    return bool(said & _PRIVATE) and not said & _PUBLIC


def _access(here: Point, invocation: Invocation) -> None:
    """`if os.access(p, W_OK): open(p)`: between the two the file may become another one."""
    statement = here.record.statement
    if invocation.name != "os.access" or not isinstance(statement, ast.If) or not invocation.node.args:
        return
    path = ast.dump(invocation.node.args[0])
    uses = (n for part in statement.body for n in ast.walk(part) if isinstance(n, ast.Call) and n.args)
    if any(
        name_of(n.func) in {"open", "remove", "unlink", "rename", "chmod"} and ast.dump(n.args[0]) == path for n in uses
    ):
        here.record.weak("check-before-use", invocation.node, confidence=Confidence.MEDIUM)


TABLES = (
    dict.fromkeys(("mktemp", "tempnam", "tmpnam"), _unsafe_name),
    {"open": _open, "write_text": _write, "write_bytes": _write, "touch": _write},
    dict.fromkeys(("mkdir", "makedirs", "FileHandler", "copy", "copyfile", "move"), _make),
    {"chmod": _chmod, "fchmod": _chmod, "lchmod": _chmod, "umask": _umask, "access": _access},
    {"open": _os_open, "mkfifo": _os_open, "mknod": _os_open, "mkdir": _mkdir, "makedirs": _mkdir},
)
