"""Checks of settings in the wrong position: debugging, CSRF, cookies, hashers; as arguments and as assignments."""

from __future__ import annotations

import ast
import re

from casemate.agents.audit.checks import ciphers, cookies, hashes, transport
from casemate.agents.audit.checks.meaning import meanings
from casemate.agents.audit.checks.words import words
from casemate.agents.audit.facts.definitions import name_of
from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.record import Record
from casemate.agents.audit.facts.sink import Invocation
from casemate.agents.audit.facts.syntax import place
from casemate.agents.audit.facts.values import NOTHING, Unknown, Value
from casemate.finding import Confidence

_APPLICATIONS = frozenset({"FastAPI", "Starlette", "Application", "Flask", "Quart", "Sanic", "Litestar", "Falcon"})
_RUNNERS = ("run", "run_app", "run_simple", "serve", "run_server")
_ELSEWHERE = frozenset({"asyncio", "anyio", "trio", "subprocess"})
_CSRF_SWITCHES = frozenset(
    {"WTF_CSRF_ENABLED", "WTF_CSRF_CHECK_DEFAULT", "JWT_COOKIE_CSRF_PROTECT", "CSRF_ENABLED", "xsrf_cookies"}
)
_REHEARSAL = frozenset({"test", "tests", "testing", "dev", "development", "local", "debug", "conftest", "fixture"})
_TRUE_TEXTS = frozenset({"1", "true", "yes", "on", "y", "t"})
_READS = frozenset({"get", "getenv", "config", "bool", "env", "getbool", "get_bool", "getboolean"})
_ASKED = frozenset({"verify_mode", "check_hostname", "minimum_version", "verify", "verify_ssl"})
_SESSIONS = re.compile(r"SessionMiddleware|AuthenticationMiddleware")


def assigned(record: Record, target: ast.expr, *, value: Value) -> None:
    """Checks of an assignment to a setting."""
    name = name_of(target)
    if name in _ASKED and isinstance(target, ast.Attribute) and isinstance(value.constant, Unknown):
        value = _meant(record, value)
    cookie = cookies.assigned(target, value=value)
    if cookie and not _is_rehearsal(record, target):
        record.weak(cookie, target)
    elif isinstance(target, ast.Subscript) and cookies.morsel(record, target):
        record.weak("cookie-without-secure", target, confidence=Confidence.MEDIUM)
    elif name in _CSRF_SWITCHES and value.constant is False and not _is_rehearsal(record, target):
        record.weak("csrf-protection-off", target)
    elif name.lower() == "debug" and _shows_debug(record, target):
        _debug(record, target, value=value)
    elif transport.assigned(record, target, value=value):
        record.weak("certificate-not-verified", target)
    elif name in {"minimum_version", "maximum_version"} and ciphers.old_version(value) and name.startswith("min"):
        record.weak("weak-cipher", target)
    elif name in {"MIDDLEWARE", "MIDDLEWARE_CLASSES", "PASSWORD_HASHERS", "MAX_IMAGE_PIXELS"}:
        _settings(record, target, value=value)


def _meant(record: Record, value: Value) -> Value:
    """The value as the source elsewhere says that it is, where that is something to tell."""
    statement = record.statement
    if value.name.endswith(("CERT_NONE", "CERT_REQUIRED")) or not isinstance(statement, ast.Assign):
        return value
    found = meanings(record, statement.value)
    return next((v for v in found if v.name.endswith("CERT_NONE") or v.constant is False), value)


def _settings(record: Record, target: ast.expr, *, value: Value) -> None:
    name, statement = name_of(target), record.statement
    given = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
    texts = [str(item.constant) for item in (value.items or {}).values()]
    if name == "MAX_IMAGE_PIXELS":
        if value.constant is None:
            record.weak("unlimited-decompression", target)
    elif name == "PASSWORD_HASHERS":
        if given is not None and hashes.hashers(given) and not _is_rehearsal(record, target):
            record.weak("fast-password-hash", target)
    elif any(_SESSIONS.search(text) for text in texts) and not any("csrf" in text.lower() for text in texts):
        record.weak("csrf-protection-off", target, confidence=Confidence.MEDIUM)


def _shows_debug(record: Record, target: ast.expr) -> bool:
    """Whether a name is the debug switch of an application: an attribute, a setting, a member of its configuration."""
    if isinstance(target, ast.Attribute):
        return target.attr == "debug" and record.speaks_web and "log" not in place(target).lower()
    if isinstance(target, ast.Subscript):
        return "config" in place(target).lower() or "settings" in place(target).lower()
    if name_of(target) != "DEBUG":
        return False
    holder = record.definitions.class_around(target.lineno)
    if holder is not None:
        return "config" in holder.name.lower() or "settings" in holder.name.lower()
    text = "\n".join(record.source.lines)
    named = record.name.rpartition(".")[2] in {"settings", "config", "production"}
    return named or "INSTALLED_APPS" in text or "MIDDLEWARE" in text or "ALLOWED_HOSTS" in text


def _debug(record: Record, target: ast.expr, *, value: Value) -> None:
    statement = record.statement
    given = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
    if _is_rehearsal(record, target):
        return
    if value.constant is True:
        record.weak("debug-enabled", target)
    elif given is not None and on_by_default(given):
        record.weak("debug-enabled", target, confidence=Confidence.MEDIUM)


def on_by_default(node: ast.expr) -> bool:  # noqa: PLR0911  # one case a form
    """Whether a switch that is read from the environment is on where nothing is set."""
    match node:
        case ast.Call(func=ast.Name(id="bool"), args=[ast.Call() as inner]):
            default = _default(inner)
            return isinstance(default, str) and bool(default)  # any text is true, "False" too
        case ast.Call(func=ast.Attribute(value=inner, attr="lower" | "strip" | "casefold")):
            return on_by_default(inner)
        case ast.Call(func=ast.Name(id="int" | "strtobool" | "str2bool"), args=[inner, *_]):
            return on_by_default(inner)
        case ast.Call():
            default = _default(node)
            return default is True or default == 1 or str(default).lower() in _TRUE_TEXTS
        case ast.Compare(left=left, ops=[ast.Eq() | ast.In()]):
            return on_by_default(left)
        case ast.Compare(left=left, ops=[ast.NotEq() | ast.NotIn()], comparators=[other]):
            default = _default(_bare(left))
            texts = [n.value for n in ast.walk(other) if isinstance(n, ast.Constant)]
            return isinstance(default, str) and default.lower() not in {str(text).lower() for text in texts}
        case _:
            return False


def _bare(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {"lower", "strip"}:
        node = node.func.value
    return node


def _default(node: ast.expr) -> object:
    """What a read of a setting gives where the setting is not there."""
    if not isinstance(node, ast.Call) or name_of(node.func) not in _READS:
        return None
    given = next((k.value for k in node.keywords if k.arg == "default"), node.args[1] if len(node.args) > 1 else None)
    return given.value if isinstance(given, ast.Constant) else None


def _is_rehearsal(record: Record, target: ast.expr) -> bool:
    """Whether a setting stands in a configuration for tests or for the developer's machine."""
    definitions = record.definitions
    holders = (definitions.class_around(target.lineno), definitions.around(target.lineno))
    named = [holder.name for holder in holders if holder is not None]
    module = record.name.rpartition(".")[2]
    return any(words(name) & _REHEARSAL for name in (*named, module))


def _configuration(here: Point, invocation: Invocation) -> None:
    """`app.config.update(SESSION_COOKIE_SECURE=False)`, `from_mapping`; as keywords or as a dictionary."""
    given: list[tuple[str, ast.AST, Value]] = [
        (keyword.arg or "", keyword, invocation.keywords.get(keyword.arg or "", NOTHING))
        for keyword in invocation.node.keywords
    ]
    for position, node in enumerate(invocation.node.args):
        items = invocation.args[position].items or {}
        given += [(str(key), node, value) for key, value in items.items()]
    for key, place_of, value in given:
        if _is_rehearsal(here.record, invocation.node):
            return
        if key in cookies.SWITCHES and value.constant is False:
            here.record.weak(cookies.SWITCHES[key], place_of)
        elif key in _CSRF_SWITCHES and value.constant is False:
            here.record.weak("csrf-protection-off", place_of)
        elif key == "DEBUG" and value.constant is True:
            here.record.weak("debug-enabled", place_of)


def _debugging(here: Point, invocation: Invocation) -> None:
    """`app.run(debug=True)`, whoever made the application; `asyncio.run` means something else by it."""
    owner, _, last = invocation.name.rpartition(".")
    root = owner.partition(".")[0]
    if owner.rpartition(".")[2] in _ELSEWHERE or root in _ELSEWHERE:
        return
    known = (last in _RUNNERS and (owner or last != "run")) or (last in _APPLICATIONS and here.record.speaks_web)
    if not known and not (last == "run" and here.record.imports("bottle")):
        return
    for keyword in invocation.node.keywords:
        if keyword.arg not in {"debug", "use_debugger", "use_evalex"}:
            continue
        if invocation.keywords[keyword.arg].constant is True:
            here.record.weak("debug-enabled", invocation.node)
        elif on_by_default(keyword.value):
            here.record.weak("debug-enabled", invocation.node, confidence=Confidence.MEDIUM)


def _spread_debug(here: Point, invocation: Invocation) -> None:
    """`Application(handlers, **settings)` with `settings = {"debug": True}`."""
    if invocation.name.rpartition(".")[2] not in {*_APPLICATIONS, *_RUNNERS} or not here.record.speaks_web:
        return
    items = invocation.keywords["**"].items or {}
    for key, value in items.items():
        if key == "debug" and value.constant is True:
            here.record.weak("debug-enabled", invocation.node)
        elif key == "xsrf_cookies" and value.constant is False:
            here.record.weak("csrf-protection-off", invocation.node)


def _debugger(here: Point, invocation: Invocation) -> None:
    """Debuggers that are put in front of the application."""
    on = invocation.argument(1, "evalex").constant is not False
    if invocation.name.startswith(("werkzeug", "aiohttp_debugtoolbar")) and on:
        here.record.weak("debug-enabled", invocation.node)


def _remote(here: Point, invocation: Invocation) -> None:
    """A debugger that waits for whoever connects; on the machine itself it is for its owner."""
    if not invocation.name.startswith(("debugpy.", "pydevd", "ptvsd.", "rpdb.", "remote_pdb.", "manhole.")):
        return
    where = invocation.argument(0)
    host = where.take(0).constant if where.items else where.constant
    if host not in {"127.0.0.1", "localhost", "::1"} and not (
        invocation.name == "debugpy.listen" and type(host) is int
    ):
        here.record.weak("debug-enabled", invocation.node)


def _forgery(here: Point, invocation: Invocation) -> None:
    """Protection against forged requests, switched off by a keyword."""
    for key in ("csrf_enabled", "xsrf_cookies", "require_csrf", "csrf_protect"):
        if invocation.keywords.get(key, NOTHING).constant is False:
            here.record.weak("csrf-protection-off", invocation.node)


TABLES = (
    {"update": _configuration, "from_mapping": _configuration},
    {"DebuggedApplication": _debugger, "setup": _debugger},
    dict.fromkeys(("listen", "settrace", "set_trace", "RemotePdb", "install", "enable_attach"), _remote),
)
KEYWORDS = (
    dict.fromkeys(("debug", "use_debugger", "use_evalex"), _debugging),
    {"**": _spread_debug},
    dict.fromkeys(("csrf_enabled", "xsrf_cookies", "require_csrf", "csrf_protect"), _forgery),
)
