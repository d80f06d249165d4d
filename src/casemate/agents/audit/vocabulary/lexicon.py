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
        *("sql", "nosql", "ldap", "xpath", "command", "code", "template", "html", "header", "log", "regex"),
        *("path", "upload", "ssrf", "redirect", "xml", "object", "mass", "session", "timing"),
    }
)
SOURCE_KINDS: Mapping[str, frozenset[str]] = {
    "web": KINDS,
    "local": frozenset({"sql", "command", "code", "template", "object", "xpath", "ldap", "nosql"}),
    "remote": frozenset({"code", "command", "object", "template"}),
    "parameter": KINDS - {"log", "session", "html", "header", "timing"},
}
"""For each kind of source, the sinks at which it matters: who starts a program may name the files that it reads."""
BUILT_ONLY = frozenset({"sql", "path", "ssrf", "redirect"})
"""Kinds where a snippet's parameter counts only as a piece of something longer: `open(path)` is what it is for."""

FRAMEWORKS = frozenset(
    {
        *("flask", "quart", "django", "rest_framework", "fastapi", "starlette", "aiohttp", "tornado", "bottle"),
        *("sanic", "pyramid", "falcon", "webob", "werkzeug", "litestar", "cherrypy", "webapp2", "blacksheep"),
    }
)
REQUESTS = frozenset(
    {"flask.request", "quart.request", "bottle.request", "cherrypy.request", "request", "web.request", "sanic.request"}
)
REQUEST_CLASSES = frozenset({"Request", "HttpRequest", "HTTPConnection", "WebSocket", "WSGIRequest", "ASGIRequest"})
REQUEST_DATA = frozenset(
    {
        *("args", "form", "values", "json", "data", "cookies", "headers", "files", "view_args", "query_string"),
        *(
            "url",
            "base_url",
            "path",
            "full_path",
            "referrer",
            "user_agent",
            "stream",
            "get_data",
            "get_json",
            "mimetype",
        ),
        *("GET", "POST", "FILES", "COOKIES", "META", "body", "get_full_path", "build_absolute_uri", "query_params"),
        *("path_params", "query", "match_info", "rel_url", "post", "text", "read", "content", "raw_args", "params"),
        *("forms", "get_cookie", "get_header", "get_param", "media", "matchdict", "arguments", "receive_text"),
        *("receive_json", "receive_bytes", "content_type", "url_root", "authorization", "query_arguments", "DATA"),
        *("get_signed_cookie", "body_arguments", "uri", "multipart", "bounded_stream", "form_data", "raw_path"),
    }
)
KEYED_READS = frozenset(
    {"get", "getlist", "get_all", "getall", "getone", "pop", "getunicode", "get_param", "get_header", "get_cookie"}
)
"""Methods of request data whose first argument names the field that is read."""

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
}
SOCKET_READS = frozenset({".recv", ".recvfrom"})
"""Sources only where the module itself speaks to sockets; pipes have methods of the same name."""
HANDLER_DATA = frozenset({"path", "headers", "rfile", "requestline"})
"""Attributes of an `http.server` handler that the client decides."""

ROUTE_VERBS = frozenset(
    {
        *("route", "get", "post", "put", "patch", "delete", "options", "head", "api_route", "websocket", "view"),
        *("get_api", "post_api", "add_route", "errorhandler"),
    }
)
CLEAN_CONVERTERS = frozenset({"int", "float", "uuid"})
CLEAN_TYPES = frozenset(
    {
        *("int", "float", "bool", "complex", "uuid.UUID", "datetime.date", "datetime.datetime", "datetime.time"),
        *("decimal.Decimal", "UUID", "date", "datetime", "PositiveInt", "NonNegativeInt", "EmailStr", "conint"),
        *("pydantic.PositiveInt", "pydantic.NonNegativeInt", "typing.Literal", "Literal", "IPvAnyAddress"),
    }
)
INJECTED = frozenset({"Depends", "Security", "Inject", "Provide", "BackgroundTasks", "Response"})
"""Parameters of a handler that the framework fills itself."""

_ALL = frozenset({EVERYTHING})
SANITIZERS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(
        (
            *("int", "float", "bool", "complex", "len", "ord", "hash", "id", "abs", "round", "isinstance", "type"),
            *("uuid.UUID", "decimal.Decimal", "fractions.Fraction", "datetime.date.fromisoformat", "hmac.new"),
            *("datetime.datetime.fromisoformat", "datetime.datetime.strptime", "time.strptime", "any", "all"),
            *("ipaddress.ip_network", "hashlib.md5", "hashlib.sha1", "hashlib.sha256", "hashlib.sha512"),
            *("hashlib.sha3_256", "hashlib.blake2b", "hashlib.new", "hashlib.pbkdf2_hmac", "hashlib.scrypt"),
            *("zlib.crc32", "binascii.crc32", "binascii.hexlify", "os.path.exists", "os.path.isfile"),
            *("os.path.isdir", "os.path.getsize", "os.path.getmtime", "hmac.compare_digest"),
            *("secrets.compare_digest", "flask.render_template", "django.shortcuts.render", "flask.jsonify"),
            *("django.http.JsonResponse", "flask.url_for", "django.urls.reverse", "fastapi.responses.JSONResponse"),
            *(
                "starlette.responses.JSONResponse",
                "aiohttp.web.json_response",
                "bottle.template",
                "sanic.response.json",
            ),
            *("werkzeug.security.generate_password_hash", "werkzeug.security.check_password_hash", "callable"),
            *("django.shortcuts.get_object_or_404", "flask.send_file", "flask.send_from_directory", "bcrypt.hashpw"),
            *("starlette.responses.FileResponse", "fastapi.responses.FileResponse", "flask.render_template_string"),
            *("render_template", "render_template_string", "jsonify", "url_for", "os.stat", "subprocess.call"),
            *("subprocess.run", "subprocess.check_call", "subprocess.Popen", "os.system"),
        ),
        _ALL,
    ),
    "ipaddress.ip_address": KINDS - {"ssrf"},
    "shlex.quote": frozenset({"command"}),
    "pipes.quote": frozenset({"command"}),
    "shlex.join": frozenset({"command"}),
    **dict.fromkeys(
        (
            *("html.escape", "cgi.escape", "markupsafe.escape", "flask.escape", "django.utils.html.escape"),
            *("django.utils.html.conditional_escape", "django.utils.html.format_html", "bleach.clean", "nh3.clean"),
            *("xml.sax.saxutils.escape", "xml.sax.saxutils.quoteattr", "jinja2.escape", "jinja2.utils.escape"),
            *("tornado.escape.xhtml_escape", "bottle.html_escape", "werkzeug.utils.escape", "escape"),
            *("django.utils.html.strip_tags", "django.template.loader.render_to_string", "lxml.html.clean.clean_html"),
            *("django.utils.html.escapejs", "django.template.defaultfilters.escape", "webob.html_escape"),
        ),
        frozenset({"html"}),
    ),
    "markupsafe.Markup.escape": frozenset({"html"}),
    "werkzeug.utils.secure_filename": frozenset({"path", "command", "header", "log", "html"}),
    "secure_filename": frozenset({"path", "command", "header", "log", "html"}),
    "os.path.basename": frozenset({"path"}),
    "ntpath.basename": frozenset({"path"}),
    "posixpath.basename": frozenset({"path"}),
    "django.utils.text.get_valid_filename": frozenset({"path", "command", "header", "log", "html"}),
    "werkzeug.utils.safe_join": frozenset({"path"}),
    "werkzeug.security.safe_join": frozenset({"path"}),
    "flask.safe_join": frozenset({"path"}),
    "django.utils._os.safe_join": frozenset({"path"}),
    "urllib.parse.quote": frozenset({"html", "header", "log", "command", "ldap", "xpath", "sql"}),
    "urllib.parse.quote_plus": frozenset({"html", "header", "log", "command", "ldap", "xpath", "sql", "path"}),
    "urllib.parse.urlencode": frozenset({"html", "header", "log", "ldap", "xpath", "sql", "path"}),
    "json.dumps": frozenset({"header", "log", "code"}),
    "base64.b64encode": frozenset({"html", "header", "log", "sql", "ldap", "xpath", "command", "template"}),
    "base64.urlsafe_b64encode": frozenset({"html", "header", "log", "sql", "ldap", "xpath", "command", "path"}),
    "re.escape": frozenset({"regex"}),
    "repr": frozenset({"log", "header"}),
    "ascii": frozenset({"log", "header"}),
    "ldap.filter.escape_filter_chars": frozenset({"ldap"}),
    "ldap.dn.escape_dn_chars": frozenset({"ldap"}),
    "ldap3.utils.conv.escape_filter_chars": frozenset({"ldap"}),
    "ldap3.utils.dn.escape_rdn": frozenset({"ldap"}),
    "psycopg2.sql.Identifier": frozenset({"sql"}),
    "psycopg.sql.Identifier": frozenset({"sql"}),
    "psycopg2.sql.Literal": frozenset({"sql"}),
    "psycopg.sql.Literal": frozenset({"sql"}),
    "ast.literal_eval": frozenset({"code"}),
    "str": frozenset({"nosql"}),
    ".hexdigest": _ALL,
    ".digest": _ALL,
    ".isoformat": _ALL,
    ".quote_identifier": frozenset({"sql"}),
    ".quote_name": frozenset({"sql"}),
    ".escape_string": frozenset({"sql"}),
    **dict.fromkeys(
        (
            *(".execute", ".executemany", ".fetchone", ".fetchall", ".fetchmany", ".first", ".one", ".one_or_none"),
            *(".scalar", ".scalars", ".scalar_one", ".filter_by", ".get_or_404", ".first_or_404", ".all", ".filter"),
            *(".find_one", ".insert_one", ".insert_many", ".query", ".objects.get", ".session.get", ".objects.create"),
            *(".get_object_or_404", ".save", ".commit", ".add", ".render_to_response", ".verify", ".check_password"),
        ),
        _ALL,
    ),
    **dict.fromkeys(
        (
            *("open", "io.open", "codecs.open", "aiofiles.open", ".read_text", ".read_bytes", "os.listdir"),
            *("os.scandir", "os.walk", "glob.glob", ".iterdir", ".glob"),
        ),
        _ALL,  # what lies in a file is not its name
    ),
    ".isdigit": _ALL,
    ".isalnum": _ALL,
    ".startswith": _ALL,
    ".endswith": _ALL,
    ".exists": _ALL,
    ".is_file": _ALL,
    ".is_dir": _ALL,
    ".count": _ALL,
    ".index": _ALL,
}
NORMALIZERS = frozenset(
    {"os.path.realpath", "os.path.abspath", "os.path.normpath", ".resolve", ".absolute", "posixpath.normpath"}
)
"""Calls after which a path holds no `..`; only then does a prefix test mean something."""
JOINERS = frozenset({"os.path.join", "posixpath.join", ".joinpath", "urllib.parse.urljoin"})
EXTENSIONS = frozenset({"os.path.splitext", "mimetypes.guess_type", "imghdr.what", "filetype.guess"})
URL_PARSERS = frozenset({"urllib.parse.urlparse", "urllib.parse.urlsplit", "yarl.URL", "furl.furl"})
HOST_PARTS = frozenset({"netloc", "hostname", "host"})
"""Parts of a parsed address whose allow-list makes the whole address safe to go to."""
PATH_KIN = frozenset({"pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath"})
