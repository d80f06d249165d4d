"""Checks of the way to the other side: whether its identity is looked at, whether it is encrypted, who may come."""

from __future__ import annotations

import ast
import re

from casemate.agents.audit.checks.purpose import named
from casemate.agents.audit.checks.words import words
from casemate.agents.audit.facts.definitions import key_of, name_of
from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.record import Record
from casemate.agents.audit.facts.sink import Invocation
from casemate.agents.audit.facts.values import NOTHING, Value
from casemate.finding import Confidence

_RULE = "certificate-not-verified"
_CLIENTS = re.compile(
    r"^(?:requests|httpx|aiohttp|urllib3|boto3|botocore|hvac|docker|elasticsearch|opensearchpy|consul|nomad)\b"
    r"|(?:Session|Client|client|session|conn\w*|http)(?:\(\))?\.|^\.(?:get|post|put|patch|delete|head|request|send)$"
    r"|(?:Session|Client|AsyncClient|Transport|TLSConfig|Elasticsearch)$"
)
_OFF_BY_FALSE = (
    *("verify_ssl", "verify_certs", "validate_cert", "validate_certs", "ssl_verify", "verify_hostname"),
    *("assert_hostname", "ssl_assert_hostname", "ssl_verify_cert", "ssl_verify_identity", "ssl_check_hostname"),
    *("tls_verify", "verify_tls", "verify_certificate", "verify_cert", "ssl_verify_peer", "validate_ssl"),
)
_OFF_BY_TRUE = (
    *("tlsAllowInvalidCertificates", "tlsInsecure", "tlsAllowInvalidHostnames", "allow_invalid_certificates"),
    *("disable_ssl_certificate_validation", "insecure_skip_verify", "skip_verify", "insecure_skip_tls_verify"),
)
_TRUSTING = re.compile(r"(?:AutoAdd|Warning)Policy(?:\(\))?$")
_AIOHTTP = frozenset({"get", "post", "put", "patch", "delete", "head", "request", "ws_connect", "TCPConnector"})
_LOCAL = re.compile(r"^(?:https?://)?(?:localhost|127\.|0\.0\.0\.0|\[::1\]|unix:|testserver)", re.IGNORECASE)
_CREDENTIALS = frozenset(
    {"password", "passwd", "pwd", "token", "secret", "authorization", "auth", "credentials", "apikey", "card"}
)
_VERBS = ("get", "post", "put", "patch", "delete", "request")
_EVERYWHERE = ("0.0.0.0", "", "::")  # noqa: S104  # told of, not bound to
_UNSURE = re.compile(r"PROTOCOL_(?:TLS|SSLv23|TLSv1_2)$")


def assigned(record: Record, target: ast.expr, *, value: Value) -> bool:
    """Whether an assignment turns off the check of the other side's identity."""
    name, off = name_of(target), value.constant is False
    context = isinstance(target, ast.Attribute | ast.Subscript)
    if name in _OFF_BY_FALSE and context:
        return off
    if name in {"verify_mode", "check_hostname"} and _is_of_server(record, target):
        return False
    return (
        (name == "verify_mode" and (value.name.endswith("CERT_NONE") or (value.constant == 0 and not off)))
        or (name == "check_hostname" and off and "CERT_NONE" not in "".join(record.source.lines))
        or (name == "_create_default_https_context" and "unverified" in value.name)
        or (name == "verify" and off and context and record.imports("requests", "httpx"))
        or (name == "hostkeys" and value.constant is None and record.imports("pysftp"))
        or (name == "PYTHONHTTPSVERIFY" and value.constant == "0")
    )


def _is_of_server(record: Record, target: ast.expr) -> bool:
    """Whether a context is the listening side's, which need not ask its clients for certificates."""
    if not isinstance(target, ast.Attribute):
        return False
    made = record.definitions.bindings.get(key_of(target.value), [])
    text = " ".join(ast.unparse(binding.value) for binding in made)
    return "TLS_SERVER" in text or "CLIENT_AUTH" in text


def _set_attribute(here: Point, invocation: Invocation) -> None:
    """`setattr(context, "verify_mode", ssl.CERT_NONE)`."""
    if invocation.argument(1).constant == "verify_mode" and invocation.argument(2).name.endswith("CERT_NONE"):
        here.record.weak(_RULE, invocation.node)


def _verify(here: Point, invocation: Invocation) -> None:
    """`verify=False`, given to something that speaks over a network; spread keywords count."""
    off = invocation.keywords.get("verify", NOTHING).constant is False
    client = _CLIENTS.search(invocation.name) and not invocation.name.startswith(("jwt", "jose"))
    if off and (client or invocation.name.endswith((".request", ".urlopen"))):
        here.record.weak(_RULE, invocation.node)


def _spread(here: Point, invocation: Invocation) -> None:
    spread = invocation.keywords["**"].items or {}
    off = any(key in {"verify", *_OFF_BY_FALSE} and value.constant is False for key, value in spread.items())
    if off and _CLIENTS.search(invocation.name):
        here.record.weak(_RULE, invocation.node)


def _flags(here: Point, invocation: Invocation) -> None:
    off = any(invocation.keywords.get(key, NOTHING).constant is False for key in _OFF_BY_FALSE)
    if off or any(invocation.keywords.get(key, NOTHING).constant is True for key in _OFF_BY_TRUE):
        here.record.weak(_RULE, invocation.node)


def _ssl(here: Point, invocation: Invocation) -> None:
    """`ssl=False` of aiohttp; elsewhere it only says that there is no TLS."""
    last = invocation.name.rpartition(".")[2]
    off = invocation.keywords["ssl"].constant is False
    if off and last in _AIOHTTP and here.record.imports("aiohttp", "aiohttp_retry"):
        here.record.weak(_RULE, invocation.node)


def _required(here: Point, invocation: Invocation) -> None:
    for key in ("cert_reqs", "ssl_cert_reqs", "validate", "verify_mode"):
        value = invocation.keywords.get(key, NOTHING)
        said = str(value.constant).lower() in {"cert_none", "none"} and (value.constant is not None or "ssl_" in key)
        if value is not NOTHING and (said or value.name.endswith("CERT_NONE")):
            here.record.weak(_RULE, invocation.node)


def _options(here: Point, invocation: Invocation) -> None:
    """`websocket.create_connection(sslopt={"cert_reqs": ssl.CERT_NONE})`."""
    chosen = invocation.keywords["sslopt"].items or {}
    if any(value.name.endswith("CERT_NONE") for value in chosen.values()):
        here.record.weak(_RULE, invocation.node)


def _host_keys(here: Point, invocation: Invocation) -> None:
    if any(_TRUSTING.search(argument.name) for argument in invocation.args):
        here.record.weak(_RULE, invocation.node)


def _known_hosts(here: Point, invocation: Invocation) -> None:
    if invocation.keywords["known_hosts"].constant is None and here.record.imports("asyncssh"):
        here.record.weak(_RULE, invocation.node)


def _unverified(here: Point, invocation: Invocation) -> None:
    chosen = "cert_reqs" in invocation.keywords and not invocation.keywords["cert_reqs"].name.endswith("CERT_NONE")
    if invocation.name.startswith("ssl.") and not chosen:
        here.record.weak(_RULE, invocation.node)


def _set_option(here: Point, invocation: Invocation) -> None:
    """`ldap.set_option(OPT_X_TLS_REQUIRE_CERT, OPT_X_TLS_NEVER)`, `curl.setopt(SSL_VERIFYPEER, 0)`."""
    if len(invocation.args) != 2:
        return
    option, value = (argument.name.rpartition(".")[2] for argument in invocation.args)
    number = invocation.args[1].constant
    lax = option == "OPT_X_TLS_REQUIRE_CERT" and (value in {"OPT_X_TLS_NEVER", "OPT_X_TLS_ALLOW"} or number == 0)
    if lax or (option in {"SSL_VERIFYPEER", "SSL_VERIFYHOST"} and number in (0, False)):
        here.record.weak(_RULE, invocation.node)


def _set_verify(here: Point, invocation: Invocation) -> None:
    if invocation.argument(0).name.endswith("VERIFY_NONE"):
        here.record.weak(_RULE, invocation.node)


def _context(here: Point, invocation: Invocation) -> None:
    """A client's context that checks nothing unless told to; servers load a certificate of their own."""
    if not invocation.name.startswith("ssl."):
        return
    chosen = invocation.argument(0, "protocol")
    text = "\n".join(here.record.source.lines)
    told = re.search(r"CERT_REQUIRED|CERT_OPTIONAL|load_cert_chain|CERT_NONE|server_side=True", text)
    wraps = invocation.name == "ssl.wrap_socket" and not {"cert_reqs", "server_side"} & invocation.keywords.keys()
    bare = invocation.name == "ssl.SSLContext" and (chosen is NOTHING or _UNSURE.search(chosen.name))
    if (wraps or bare) and not told:
        here.record.weak(_RULE, invocation.node, confidence=Confidence.MEDIUM)


def _cleartext(here: Point, invocation: Invocation) -> None:
    if invocation.name in {"telnetlib.Telnet", "ftplib.FTP", "aioftp.Client", "telnetlib3.open_connection"}:
        here.record.weak("cleartext-transport", invocation.node)


def _insecure_channel(here: Point, invocation: Invocation) -> None:
    address = invocation.argument(0).constant
    local = isinstance(address, str) and _LOCAL.match(address)
    if invocation.name.startswith("grpc") and not local:
        here.record.weak("cleartext-transport", invocation.node, confidence=Confidence.MEDIUM)


def _login(here: Point, invocation: Invocation) -> None:
    """A mail server is told a password, and nothing in the file ever turns on TLS."""
    if re.match(r"(?:smtplib\.SMTP|imaplib\.IMAP4|poplib\.POP3)\(\)", invocation.name):
        text = "\n".join(here.record.source.lines)
        if not re.search(r"\.(?:starttls|stls)\(|SMTP_SSL|IMAP4_SSL|POP3_SSL|localhost|127\.0\.0\.1", text):
            here.record.weak("cleartext-transport", invocation.node)


def _plain_http(here: Point, invocation: Invocation) -> None:
    """Credentials sent to a fixed address without TLS."""
    target = invocation.written(1 if invocation.name.endswith(".request") else 0, "url")
    if target is None or not re.match(r"(?:requests|httpx|aiohttp|urllib3)\b", invocation.name):
        return
    address = _beginning(here, target)
    if not address.lower().startswith("http://") or _LOCAL.match(address) or "." not in address:
        return
    given = [k.value for k in invocation.node.keywords if k.arg in {"data", "json", "params", "headers", "auth"}]
    with_auth = any(k.arg == "auth" for k in invocation.node.keywords)
    said = frozenset[str]().union(*(named(value) | _keys(value) for value in given))
    if with_auth or said & _CREDENTIALS:
        here.record.weak("cleartext-transport", invocation.node, confidence=Confidence.MEDIUM)


def _beginning(here: Point, node: ast.expr) -> str:
    """The fixed text at the beginning of an address."""
    match node:
        case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]) | ast.Constant(value=str(text)):
            return text
        case ast.BinOp(left=left) | ast.JoinedStr(values=[ast.FormattedValue(value=left), *_]):
            return _beginning(here, left)
        case ast.Name():
            known = here.value(node).constant
            return known if isinstance(known, str) else ""
        case _:
            return ""


def _keys(node: ast.expr) -> frozenset[str]:
    texts = (key.value for key in node.keys if isinstance(key, ast.Constant)) if isinstance(node, ast.Dict) else ()
    return frozenset[str]().union(*(words(str(text)) for text in texts))


def _bind(here: Point, invocation: Invocation) -> None:
    """A socket of this program that listens on every address of the machine."""
    host = invocation.argument(0).take(0).constant
    if host in _EVERYWHERE and "socket" in invocation.name:
        here.record.weak("listens-everywhere", invocation.node, confidence=Confidence.MEDIUM)


def _cross_origin(here: Point, invocation: Invocation) -> None:
    """Every site may send requests with the visitor's cookies and read the answers."""
    given = {
        **invocation.keywords,
        **{str(k): v for k, v in (invocation.keywords.get("**", NOTHING).items or {}).items()},
    }
    origins = next((given[key] for key in ("allow_origins", "origins", "allow_origin_regex") if key in given), NOTHING)
    texts = [origins.constant, *(item.constant for item in (origins.items or {}).values())]
    shared = any(given.get(key, NOTHING).constant is True for key in ("allow_credentials", "supports_credentials"))
    every = any(text in {"*", ".*", "https?://.*", "http://*", "https://*"} for text in texts if isinstance(text, str))
    flask_default = invocation.name.startswith("flask_cors.") and origins is NOTHING
    if shared and (every or flask_default) and "resources" not in given:
        here.record.weak("cross-origin-open", invocation.node)


TABLES = (
    {
        "setattr": _set_attribute,
        "set_missing_host_key_policy": _host_keys,
        "set_option": _set_option,
        "setopt": _set_option,
    },
    dict.fromkeys(("_create_unverified_context", "_create_stdlib_context"), _unverified),
    {"SSLContext": _context, "wrap_socket": _context, "set_verify": _set_verify, "bind": _bind},
    dict.fromkeys(("Telnet", "FTP", "Client", "open_connection"), _cleartext),
    {"insecure_channel": _insecure_channel, "add_insecure_port": _insecure_channel, "login": _login},
    dict.fromkeys(_VERBS, _plain_http),
)
KEYWORDS = (
    {"verify": _verify, "**": _spread, "ssl": _ssl, "sslopt": _options, "known_hosts": _known_hosts},
    dict.fromkeys((*_OFF_BY_FALSE, *_OFF_BY_TRUE), _flags),
    dict.fromkeys(("cert_reqs", "ssl_cert_reqs", "validate", "verify_mode"), _required),
    dict.fromkeys(("allow_credentials", "supports_credentials"), _cross_origin),
)
