"""Checks of what a program opens and writes: parsers, temporary files, permissions, archives, logs, plain transport."""

from __future__ import annotations

import ast
import re

from casemate.agents.audit.checks.defaults import name_of
from casemate.agents.audit.checks.secrets import words
from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.sink import Invocation
from casemate.agents.audit.facts.values import NOTHING
from casemate.finding import Confidence

_SAFE_LOADERS = frozenset({"SafeLoader", "CSafeLoader", "BaseLoader", "CBaseLoader", "FullLoader", "CFullLoader"})
_LOGS = frozenset({"debug", "info", "warning", "warn", "error", "critical", "exception", "log", "print"})
_SENSITIVE = frozenset({"password", "passwd", "pwd", "passphrase", "ssn", "cvv", "secret", "apikey", "creditcard"})
_ABOUT_SECRETS = frozenset({"reset", "policy", "length", "hash", "hashed", "field", "url", "id"})
_WORLD_WRITABLE = 0o002
_TEMPORARY = re.compile(r"(?:/tmp|/var/tmp|/dev/shm)/")


def _yaml(here: Point, invocation: Invocation) -> None:
    name = invocation.name
    loader = invocation.argument(1, "Loader")
    unsafe = loader is NOTHING or (bool(loader.name) and loader.name.rpartition(".")[2] not in _SAFE_LOADERS)
    if name in {"yaml.unsafe_load", "yaml.unsafe_load_all"} or (
        name in {"yaml.load", "yaml.load_all", "ruamel.yaml.load"} and unsafe
    ):
        here.record.weak("unsafe-deserialization", invocation.node)


def _xml(here: Point, invocation: Invocation) -> None:
    name, keywords = invocation.name, invocation.keywords
    if name.startswith("lxml") and name.endswith("XMLParser"):
        wide = {"resolve_entities": True, "load_dtd": True, "no_network": False}
        if any(keywords.get(key, NOTHING).constant is value for key, value in wide.items()):
            here.record.weak("xml-external-entity", invocation.node)
    elif name.endswith(".setFeature") and invocation.argument(1).constant in (True, 1):
        feature = invocation.argument(0)
        if "external_ges" in feature.name or "external-general-entities" in str(feature.constant):
            here.record.weak("xml-external-entity", invocation.node)


def _templates(here: Point, invocation: Invocation) -> None:
    if invocation.name not in {"jinja2.Environment", "jinja2.environment.Environment"}:
        return
    given = invocation.keywords.get("autoescape")
    if given is None and here.record.speaks_web:
        here.record.weak("autoescape-off", invocation.node, confidence=Confidence.LOW)
    elif given is not None and given.constant is False:
        here.record.weak("autoescape-off", invocation.node, confidence=Confidence.MEDIUM)


def _temporary(here: Point, invocation: Invocation) -> None:
    if invocation.name in {"tempfile.mktemp", "os.tempnam", "os.tmpnam"}:
        here.record.weak("insecure-temporary-file", invocation.node)
    elif invocation.name in {"open", "io.open"} and _TEMPORARY.match(str(invocation.argument(0).constant)):
        mode = invocation.argument(1, "mode").constant
        if isinstance(mode, str) and "w" in mode:
            here.record.weak("insecure-temporary-file", invocation.node, confidence=Confidence.LOW)


def _permissions(here: Point, invocation: Invocation) -> None:
    name = invocation.name
    if name.endswith((".chmod", ".fchmod")):
        mode = invocation.argument(1 if name.startswith("os.") else 0, "mode").constant
        shown = " ".join(ast.unparse(argument) for argument in invocation.node.args)
        if (isinstance(mode, int) and mode & _WORLD_WRITABLE) or re.search(r"S_IRWXO|S_IWOTH", shown):
            here.record.weak("world-writable-file", invocation.node)
    elif name == "os.umask" and invocation.argument(0).constant == 0:
        here.record.weak("world-writable-file", invocation.node, confidence=Confidence.MEDIUM)


def _archives(here: Point, invocation: Invocation) -> None:
    name = invocation.name
    unpacks = name.startswith("tarfile.") and name.endswith(".extractall")
    if unpacks and not {"filter", "members"} & invocation.keywords.keys():
        here.record.weak("archive-traversal", invocation.node, confidence=Confidence.MEDIUM)


def _logs(here: Point, invocation: Invocation) -> None:
    """A password's own value in a log line."""
    owner, _, last = invocation.name.rpartition(".")
    logs = last in _LOGS and ("log" in owner.lower() or last == "print")
    if logs and any(_shows_secret(argument) for argument in invocation.node.args):
        here.record.weak("secret-in-log", invocation.node, confidence=Confidence.MEDIUM)


def _shows_secret(node: ast.expr) -> bool:
    """Whether a secret's value is in the text as it is: not its length, not the result of a comparison."""
    match node:
        case ast.Name() | ast.Attribute():
            named = words(name_of(node))
            return bool(named & _SENSITIVE) and not named & _ABOUT_SECRETS
        case ast.JoinedStr(values=parts) | ast.Tuple(elts=parts):
            return any(_shows_secret(part) for part in parts)
        case ast.FormattedValue(value=value):
            return _shows_secret(value)
        case ast.BinOp(left=left, right=right):
            return _shows_secret(left) or _shows_secret(right)
        case ast.Call(func=ast.Attribute(attr="format"), args=args):
            return any(_shows_secret(argument) for argument in args)
        case _:
            return False


def _cleartext(here: Point, invocation: Invocation) -> None:
    if invocation.name in {"telnetlib.Telnet", "ftplib.FTP"}:
        here.record.weak("cleartext-transport", invocation.node)


CHECKS = (_yaml, _xml, _templates, _temporary, _permissions, _archives, _logs, _cleartext)
