"""Frameworks of the web: what their requests are called, and what clients decide in them. Facts only."""

from __future__ import annotations

import re

FRAMEWORKS = frozenset(
    {
        *("flask", "quart", "django", "rest_framework", "fastapi", "starlette", "aiohttp", "tornado", "bottle"),
        *("sanic", "pyramid", "falcon", "webob", "werkzeug", "litestar", "cherrypy", "webapp2", "blacksheep"),
        *(
            "flask_restful",
            "flask_restx",
            "flask_restplus",
            "ninja",
            "functions_framework",
            "robyn",
            "microdot",
            "apiflask",
        ),
        *("flask_openapi3", "connexion", "muffin", "responder", "hug", "emmett", "web", "flask_socketio", "channels"),
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
        *(
            "get_media",
            "get_param_as_list",
            "path_url",
            "relative_uri",
            "query_args",
            "get_body",
            "iter_text",
            "getlist",
        ),
        *("json_body", "GETS", "path_info", "path_qs", "url_rule_args", "host", "host_url", "subdomain", "match_dict"),
    }
)
JSON_DATA = frozenset(
    {"json", "get_json", "JSON", "media", "get_media", "data", "body", "get_data", "receive_json", "DATA", "json_body"}
)
"""Request data that may be more than text."""
OWN_ADDRESS = frozenset(
    {
        *(
            "path",
            "full_path",
            "get_full_path",
            "path_info",
            "path_qs",
            "relative_uri",
            "base_url",
            "url_root",
            "host_url",
        ),
        *("script_root", "build_absolute_uri", "raw_path", "endpoint"),
    }
)
"""Request data that stays on this site: a redirect to it leads back here."""
KEYED_READS = frozenset(
    {"get", "getlist", "get_all", "getall", "getone", "pop", "getunicode", "get_param", "get_header", "get_cookie"}
)
"""Methods of request data whose first argument names the field that is read."""

_SERVER_DATA = frozenset({"path", "headers", "rfile", "requestline"})
_VIEW_DATA = frozenset({"kwargs"})
_TORNADO_DATA = frozenset({"path_args", "path_kwargs"})
SESSIONS = frozenset({"flask.session", "quart.session", "session", "aiohttp_session.get_session()", "bottle.session"})
_VIEWS = ("django.views.", "rest_framework.", "django.contrib.")
_CLEAN_OPTIONS = frozenset({"int", "float", "bool", "uuid.UUID", "decimal.Decimal", "datetime.date.fromisoformat"})

AUTHORITY_WORDS = re.compile(
    r"user|role|admin|tenant|account|org|workspace|owner|permission|scope|member|customer|company|branch|school|group|uid|level|workspace|team|client",
    re.IGNORECASE,
)
"""Words for who somebody is and what they may do: there a number is no more trustworthy than a text."""


def is_session(name: str) -> bool:
    """Whether an access path is the session of a web framework, which later code trusts."""
    return name in SESSIONS or name.endswith("request.session")


def is_upload(key: str) -> bool:
    """Whether the key of a source names a file that a client sent."""
    return any(word in key for word in (".files", ".FILES", "upload", "multipart"))


def is_web_view(bases: tuple[str, ...]) -> bool:
    """Whether a class with these bases is a view of Django or its REST framework."""
    return any(base.startswith(_VIEWS) or base.endswith(("View", "ViewSet", "APIView")) for base in bases)


def client_data(bases: tuple[str, ...], attribute: str) -> bool:
    """Whether an attribute of a handler with these bases is what the client decides."""
    if any("HTTPRequestHandler" in base or "StreamRequestHandler" in base for base in bases):
        return attribute in _SERVER_DATA
    if any(base.startswith("tornado.") for base in bases):
        return attribute in _TORNADO_DATA
    return attribute in _VIEW_DATA and is_web_view(bases)


def is_clean_option(converter: str) -> bool:
    """Whether what a command line hands over is converted by this name to something harmless."""
    return converter in _CLEAN_OPTIONS or converter.rpartition(".")[2] in {
        "Choice",
        "IntRange",
        "FloatRange",
        "DateTime",
    }
