"""The vocabulary of the analysis: which names bring untrusted data in, and which make it harmless. Facts only.

A name is an access path: `sqlite3.connect().execute` is the method of what that call returns, `.execute` any method of
that name. Kinds of sink are the words in `KINDS`.
"""

from __future__ import annotations

from collections.abc import Mapping

EVERYTHING = "*"
"""As a kind: harmless for every kind of sink."""
KINDS = frozenset(
    {
        *("sql", "nosql", "ldap", "dn", "xpath", "command", "code", "template", "html", "header", "log", "regex"),
        *(
            "path",
            "upload",
            "ssrf",
            "redirect",
            "xml",
            "object",
            "module",
            "program",
            "mass",
            "session",
            "authority",
            "timing",
            "long",
            "size",
        ),
    }
)
AMOUNT = frozenset({"amount"})
"""Numbers are harmless for all kinds but this: a count or size that nobody bounds."""
SOURCE_KINDS: Mapping[str, frozenset[str]] = {
    "web": KINDS | AMOUNT,
    "local": frozenset({"sql", "command", "code", "template", "object", "xpath", "ldap", "dn", "nosql"}),
    "remote": frozenset({"code", "command", "object", "template"}),
    "archive": frozenset({"path"}),
    "message": KINDS | AMOUNT,
    "parameter": KINDS - {"log", "session", "authority", "html", "header", "timing", "size"},
}
"""For each kind of source, the sinks at which it matters: who starts a program may name the files that it reads."""
BUILT_ONLY = frozenset({"sql", "path", "ssrf", "redirect"})
"""Kinds where a snippet's parameter counts only as a piece of something longer: `open(path)` is what it is for."""

SOURCES: Mapping[str, str] = {
    "input": "local",
    "raw_input": "local",
    "sys.argv": "local",
    "sys.stdin": "local",
    "fileinput.input": "local",
    ".parse_args": "local",
    ".parse_known_args": "local",
    "urllib.request.urlopen": "remote",
    "requests.get": "remote",
    "requests.post": "remote",
    "requests.request": "remote",
    "httpx.get": "remote",
    "httpx.post": "remote",
    "cgi.FieldStorage": "web",
    ".get_argument": "web",
    ".get_arguments": "web",
    ".get_query_argument": "web",
    ".get_query_arguments": "web",
    ".get_body_argument": "web",
    ".get_body_arguments": "web",
    ".recvfrom": "web",
    ".recv": "web",
    ".receive_text": "web",
    ".receive_json": "web",
    ".receive_bytes": "web",
    **dict.fromkeys(
        (
            *("streamlit.text_input", "streamlit.text_area", "streamlit.chat_input", "streamlit.sidebar.text_input"),
            *("streamlit.query_params", "streamlit.experimental_get_query_params", "streamlit.sidebar.text_area"),
            *("flask_restful.reqparse.RequestParser().parse_args", "flask_restx.reqparse.RequestParser().parse_args"),
            *("webargs.flaskparser.parser.parse", "email.message_from_bytes", "email.message_from_string"),
        ),
        "web",
    ),
    **dict.fromkeys(
        (
            *("kafka.KafkaConsumer", "confluent_kafka.Consumer().poll", "confluent_kafka.Consumer().consume"),
            *("aiokafka.AIOKafkaConsumer", ".receive_message", ".receive_messages", ".pubsub().get_message", ".blpop"),
            *(".brpop", ".bzpopmin", ".xread", ".xreadgroup", ".pubsub().listen", "nats.connect().next_msg"),
            *("zmq.Context().socket().recv", "zmq.Context().socket().recv_string", ".basic_get", "stomp.Connection"),
        ),
        "message",
    ),
    "urllib3.PoolManager().request": "remote",
    **dict.fromkeys(("tarfile.open", "tarfile.TarFile", "zipfile.ZipFile", "rarfile.RarFile"), "archive"),
    **dict.fromkeys(("os.environ", "os.getenv", "os.getenvb", "os.environb"), "local"),
}
SOCKET_READS = frozenset({".recv", ".recvfrom"})
"""Sources only where the module itself speaks to sockets; pipes have methods of the same name."""
NORMALIZERS = frozenset(
    {"os.path.realpath", "os.path.abspath", "os.path.normpath", ".resolve", ".absolute", "posixpath.normpath"}
)
"""Calls after which a path holds no `..`; only then does a prefix test mean something."""
JOINERS = frozenset({"os.path.join", "posixpath.join", ".joinpath", "urllib.parse.urljoin"})
EXTENSIONS = frozenset({"os.path.splitext", "mimetypes.guess_type", "imghdr.what", "filetype.guess"})
URL_PARSERS = frozenset(
    {
        *("urllib.parse.urlparse", "urllib.parse.urlsplit", "yarl.URL", "furl.furl", "httpx.URL", "rfc3986.urlparse"),
        *("urllib3.util.parse_url", "urllib3.util.url.parse_url", "starlette.datastructures.URL", "hyperlink.parse"),
        *("werkzeug.urls.url_parse", "tldextract.extract", "urlparse.urlparse"),
    }
)
HOST_PARTS = frozenset({"netloc", "hostname", "host"})
"""Parts of a parsed address whose allow-list makes the whole address safe to go to."""
PATH_KIN = frozenset({"pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath"})
