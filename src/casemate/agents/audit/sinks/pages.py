"""Where untrusted data reaches a browser: pages, redirects, headers of answers and of letters."""

from __future__ import annotations

from casemate.agents.audit.facts.sink import Invocation
from casemate.agents.audit.facts.values import NOTHING, Value
from casemate.agents.audit.sinks.table import Table, all_of, joined, rows, sink

_HTML = ("cross-site-scripting", "html")
_REDIRECT = ("open-redirect", "redirect")
_HEADER = ("header-injection", "header")
_LETTER = ("mail-header-injection", "header")

_PAGE_KINDS = ("html", "svg", "xml")
_MARKED = (
    "markupsafe.Markup flask.Markup jinja2.Markup django.utils.safestring.mark_safe Markup mark_safe "
    "django.utils.safestring.SafeString django.utils.safestring.SafeText django.utils.html.format_html "
    "jinja2.utils.Markup starlette.responses.HTMLResponse fastapi.responses.HTMLResponse sanic.response.html "
    "wtforms.widgets.HTMLString django.utils.html.mark_safe blacksheep.html streamlit.components.v1.html "
    "IPython.display.HTML litestar.MediaType.HTML"
)
_RESPONSES = (
    "django.http.HttpResponse flask.Response werkzeug.wrappers.Response webob.Response pyramid.response.Response "
    "django.http.response.HttpResponse django.http.HttpResponseBadRequest django.http.HttpResponseNotFound "
    "django.http.HttpResponseForbidden django.http.HttpResponseServerError django.http.HttpResponseGone "
    "bottle.HTTPResponse bottle.HTTPError quart.Response werkzeug.Response flask.wrappers.Response "
    "django.http.StreamingHttpResponse pyramid.response.Response().write flask.current_app.response_class "
    "flask.Flask().response_class .response.write .response.out.write"
)
_PLAIN_RESPONSES = (
    "aiohttp.web.Response starlette.responses.Response fastapi.Response fastapi.responses.Response "
    "sanic.response.HTTPResponse starlette.responses.StreamingResponse fastapi.responses.StreamingResponse "
    "sanic.response.text litestar.Response sanic.HTTPResponse sanic.response.raw blacksheep.Response"
)
_UNSAFE_WHEN_TOLD = "streamlit.markdown streamlit.write streamlit.caption streamlit.sidebar.markdown"
_REDIRECTS = (
    "flask.redirect django.shortcuts.redirect django.http.HttpResponseRedirect redirect quart.redirect "
    "django.http.HttpResponsePermanentRedirect django.http.response.HttpResponseRedirect "
    "starlette.responses.RedirectResponse fastapi.responses.RedirectResponse aiohttp.web.HTTPFound "
    "aiohttp.web.HTTPSeeOther bottle.redirect werkzeug.utils.redirect sanic.response.redirect sanic.redirect "
    "pyramid.httpexceptions.HTTPFound pyramid.httpexceptions.HTTPSeeOther "
    "pyramid.httpexceptions.HTTPMovedPermanently aiohttp.web.HTTPMovedPermanently aiohttp.web.HTTPTemporaryRedirect "
    "aiohttp.web.HTTPPermanentRedirect falcon.HTTPFound falcon.HTTPSeeOther falcon.HTTPMovedPermanently "
    "falcon.HTTPTemporaryRedirect falcon.HTTPPermanentRedirect litestar.response.Redirect "
    "litestar.response.redirect.Redirect cherrypy.HTTPRedirect webob.exc.HTTPFound webob.exc.HTTPSeeOther "
    "werkzeug.exceptions.RequestRedirect fastapi.RedirectResponse blacksheep.redirect web.seeother web.found"
)
_LETTERS = "smtplib.SMTP().sendmail smtplib.SMTP_SSL().sendmail aiosmtplib.send aiosmtplib.SMTP().sendmail"


def is_page(call: Invocation) -> bool:
    """Whether a response is sent as HTML: no content type, or one that browsers render."""
    told = _content_type(call)
    return told is None or any(kind in told for kind in _PAGE_KINDS)


def _is_told_page(call: Invocation) -> bool:
    """For responses that are plain text unless told otherwise."""
    told = _content_type(call)
    return told is not None and "html" in told


def _content_type(call: Invocation) -> str | None:
    for keyword in ("content_type", "mimetype", "media_type"):
        value = call.keywords.get(keyword)
        if value is not None and isinstance(value.constant, str):
            return value.constant.lower()
        if value is not None and value.name.endswith("MediaType.HTML"):
            return "text/html"
    for headers in (call.keywords.get("headers", NOTHING), *call.args[1:3]):
        for key, value in (headers.items or {}).items():
            if str(key).lower() == "content-type" and isinstance(value.constant, str):
                return value.constant.lower()
    return None


def _location(call: Invocation) -> Value:
    """`Response(headers={"Location": …})`."""
    return all_of(
        value
        for headers in (call.keywords.get("headers", NOTHING), *call.args[1:3])
        for key, value in (headers.items or {}).items()
        if str(key).lower() == "location"
    )


def _unsafe_markup(call: Invocation) -> bool:
    return call.is_set("unsafe_allow_html")


def _is_tornado(call: Invocation) -> bool:
    """Whether a method is one of tornado's request handlers."""
    return any(base.startswith("tornado.web.") or base.endswith("RequestHandler") for base in call.bases) and not any(
        "HTTPRequestHandler" in base or "socketserver" in base for base in call.bases
    )


def _is_tornado_page(call: Invocation) -> bool:
    return _is_tornado(call) and (not call.sends or "html" in call.sends)


def _chunk(call: Invocation) -> Value:
    """What is written; a dictionary is sent as JSON."""
    given = call.argument(0, "chunk")
    return NOTHING if given.items is not None or ("json" in given.marks and "built" not in given.marks) else given


def _sends_html(call: Invocation) -> bool:
    return "html" in call.sends


def _is_location(call: Invocation) -> bool:
    return str(call.argument(0).constant).lower() == "location"


def _is_other_header(call: Invocation) -> bool:
    return not _is_location(call)


def _written_letter(call: Invocation) -> Value:
    """A letter that is put together as text; what the library writes out has its line breaks checked."""
    letter = call.argument(2, "msg")
    return NOTHING if letter.name.endswith((".as_string()", ".as_bytes()")) else letter


TABLE: Table = joined(
    (
        rows(sink(_HTML, 0, "content", "body", "format_string", "data"), _MARKED),
        rows(sink(_HTML, 0, "content", "response", "body", "streaming_content", when=is_page), _RESPONSES),
        rows(sink(_HTML, 0, "text", "body", "content", when=_is_told_page), _PLAIN_RESPONSES),
        rows(sink(_HTML, 0, "body", when=_unsafe_markup), _UNSAFE_WHEN_TOLD),
        rows(sink(_HTML, when=_is_tornado_page, reach=_chunk), ".write .finish"),
        rows(sink(_HTML, when=_sends_html), ".wfile.write"),
        rows(sink(_REDIRECT, 0, "location", "url", "redirect_to", "to", "path", "urls"), _REDIRECTS),
        rows(sink(_REDIRECT, 0, "url"), ".redirect"),
        rows(sink(_REDIRECT, reach=_location), _RESPONSES, _PLAIN_RESPONSES),
        rows(sink(_REDIRECT, 1, when=_is_location), ".send_header .set_header .add_header"),
        rows(sink(_HEADER, 0, 1, when=_is_other_header), ".send_header"),
        rows(sink(_HEADER, 1), ".putheader"),
        rows(sink(_HEADER, 1, "headers"), "start_response"),
        rows(sink(_LETTER, reach=_written_letter), _LETTERS),
    )
)
