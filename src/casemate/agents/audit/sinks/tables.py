"""Where untrusted data does harm: calls, the arguments that matter, and under which condition. Facts only."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from casemate.agents.audit.facts.sink import Condition, Invocation, Sink
from casemate.finding import Confidence

_SQL_TEXT = re.compile(r"\b(?:select|insert|update|delete|create|drop|sql|query|stmt|statement)\b", re.IGNORECASE)
_FILTER = re.compile(r"\(\s*[&|!(]*\s*\w+[~<>]?=")


def _with_shell(call: Invocation) -> bool:
    return call.is_set("shell")


def _html(call: Invocation) -> bool:
    """Whether a response is sent as HTML: no content type, or one that browsers render."""
    for keyword in ("content_type", "mimetype", "media_type"):
        value = call.keywords.get(keyword)
        if value is not None and isinstance(value.constant, str):
            return "html" in value.constant or "svg" in value.constant or "xml" in value.constant
    return True


def _html_only(call: Invocation) -> bool:
    """For responses that are plain text unless told otherwise."""
    return any(
        isinstance(value.constant, str) and "html" in value.constant
        for keyword in ("content_type", "media_type", "mimetype")
        if (value := call.keywords.get(keyword)) is not None
    )


def _unsafe_parser(call: Invocation) -> bool:
    """Lxml's own default parser, or none given: entities of a document are expanded before lxml 5."""
    parser = call.argument(1, "parser")
    return not parser.name or ("safe" not in parser.marks and "XMLParser" in parser.name)


def _table(of: tuple[str, str], names: str, *arguments: int | str, when: Condition = lambda _: True) -> dict[str, Sink]:
    """One row for each name: the same rule and kind, arguments and condition."""
    rule, kind = of
    return {name: Sink(rule, kind, arguments or (0,), when) for name in names.split()}


_SQL = ".execute .executemany .executescript .read_sql .read_sql_query .mogrify .copy_expert"
_SQL_NAMES = (
    "sqlalchemy.text sqlalchemy.sql.text sqlalchemy.sql.expression.text django.db.models.expressions.RawSQL "
    "django.db.models.RawSQL pandas.read_sql pandas.read_sql_query sqlalchemy.literal_column .raw"
)
_SHELL = (
    "os.system os.popen os.popen2 os.popen3 commands.getoutput commands.getstatusoutput subprocess.getoutput "
    "subprocess.getstatusoutput asyncio.create_subprocess_shell popen2.popen2 pty.spawn .exec_command "
    "asyncio.subprocess.create_subprocess_shell invoke.run fabric.api.run fabric.api.local fabric.api.sudo "
    ".subprocess_shell"
)
_RUN = "subprocess.run subprocess.call subprocess.check_call subprocess.check_output subprocess.Popen"
_SPAWN = (
    "os.execl os.execle os.execlp os.execlpe os.execv os.execve os.execvp os.execvpe os.startfile "
    "asyncio.create_subprocess_exec"
)
_PATH = (
    "open io.open os.open codecs.open os.remove os.unlink os.rmdir os.removedirs os.mkdir os.makedirs os.listdir "
    "os.scandir os.walk os.readlink os.chmod os.chown shutil.rmtree flask.send_file send_file "
    "aiofiles.open tarfile.open zipfile.ZipFile gzip.open bz2.open lzma.open linecache.getlines numpy.load "
    "starlette.responses.FileResponse fastapi.responses.FileResponse aiohttp.web.FileResponse "
    "django.http.FileResponse PIL.Image.open fileinput.FileInput pathlib.Path().open"
)
_PATH_METHODS = ".read_text .read_bytes .write_text .write_bytes .unlink .rmdir .mkdir .iterdir .open"
_PATH_PAIRS = (
    "os.rename os.replace os.link os.symlink shutil.copy shutil.copy2 shutil.copyfile shutil.copytree shutil.move"
)
_REQUEST = (
    "requests.get requests.post requests.put requests.patch requests.delete requests.head requests.options "
    "httpx.get httpx.post httpx.put httpx.patch httpx.delete httpx.head httpx.options urllib.request.urlopen "
    "urllib.request.urlretrieve urllib.request.Request urllib2.urlopen urllib.urlopen aiohttp.request "
    "http.client.HTTPConnection http.client.HTTPSConnection pycurl.Curl().setopt wget.download"
)
_CLIENTS = (
    "requests.Session()",
    "requests.session()",
    "httpx.Client()",
    "httpx.AsyncClient()",
    "aiohttp.ClientSession()",
)
_VERBS = ("get", "post", "put", "patch", "delete", "head", "options")
_REDIRECT = (
    "flask.redirect django.shortcuts.redirect django.http.HttpResponseRedirect redirect "
    "django.http.HttpResponsePermanentRedirect starlette.responses.RedirectResponse "
    "fastapi.responses.RedirectResponse aiohttp.web.HTTPFound aiohttp.web.HTTPSeeOther bottle.redirect "
    "werkzeug.utils.redirect sanic.response.redirect quart.redirect pyramid.httpexceptions.HTTPFound "
    "aiohttp.web.HTTPMovedPermanently aiohttp.web.HTTPTemporaryRedirect falcon.HTTPFound"
)
_HTML = (
    "markupsafe.Markup flask.Markup jinja2.Markup django.utils.safestring.mark_safe Markup mark_safe "
    "starlette.responses.HTMLResponse fastapi.responses.HTMLResponse sanic.response.html litestar.Response"
)
_HTML_RESPONSES = (
    "django.http.HttpResponse flask.Response werkzeug.wrappers.Response webob.Response pyramid.response.Response "
    "django.http.response.HttpResponse django.http.HttpResponseBadRequest django.http.HttpResponseNotFound "
    "bottle.HTTPResponse quart.Response"
)
_PLAIN_RESPONSES = "aiohttp.web.Response starlette.responses.Response fastapi.Response fastapi.responses.Response"
_TEMPLATE = (
    "flask.render_template_string jinja2.Template mako.template.Template quart.render_template_string "
    "django.template.Template tornado.template.Template render_template_string bottle.SimpleTemplate "
    "jinja2.Environment().from_string jinja2.Environment(autoescape).from_string chameleon.PageTemplate "
    "string.Formatter().vformat bottle.template jinja2.environment.Template flask.templating.render_template_string"
)
_LOAD = (
    "pickle.loads pickle.load pickle.Unpickler cPickle.loads cPickle.load _pickle.loads dill.loads dill.load "
    "cloudpickle.loads cloudpickle.load marshal.loads marshal.load shelve.open jsonpickle.decode joblib.load "
    "pandas.read_pickle jsonpickle.loads torch.load"
)
_XPATH = ".xpath lxml.etree.XPath elementpath.select"
_XPATH_FIND = ".find .findall .findtext .iterfind"
_LOG = ".debug .info .warning .warn .error .critical .exception .log"
_NOSQL = (
    ".find_one .find .delete_one .delete_many .update_one .update_many .replace_one .count_documents .aggregate "
    ".find_one_and_update .find_one_and_delete .find_one_and_replace"
)
_LDAP = ".search .search_s .search_st .search_ext .search_ext_s"
_REGEX = "re.compile re.match re.search re.fullmatch re.findall re.finditer re.sub re.split regex.compile"


def _is_logger(call: Invocation) -> bool:
    """Whether the receiver looks like a logger (`logging`, `app.logger`, `log`)."""
    owner = call.name.rpartition(".")[0].lower()
    node = call.node.func
    shown = node.value.id.lower() if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) else owner
    return (
        "log" in owner.rpartition(".")[2]
        or "getlogger" in owner
        or shown in {"log", "logger", "logging", "_log", "_logger"}
    )


def _is_ldap(call: Invocation) -> bool:
    """Whether `.search` belongs to a directory: by its owner, or by a filter in brackets."""
    shown = any(_FILTER.search(ast.unparse(argument)) for argument in call.node.args)
    return "ldap" in call.name.lower() or ".search_" in call.name or shown or "search_filter" in call.keywords


def _is_xpath(call: Invocation) -> bool:
    return "tree" in call.name.lower() or "xml" in call.name.lower()


def _is_query(call: Invocation) -> bool:
    """For method names that not only databases have: the argument reads like SQL."""
    return bool(call.node.args) and bool(_SQL_TEXT.search(ast.unparse(call.node.args[0])))


def _is_mongo(call: Invocation) -> bool:
    """A query document: a dict with untrusted members, or untrusted JSON itself; never a plain string."""
    query = call.argument(0, "filter")
    return query.items is not None or "json" in query.marks


SINKS: Mapping[str, Sink] = {
    **_table(("sql-injection", "sql"), _SQL, 0, "sql", "query", "operation", "statement"),
    **_table(("sql-injection", "sql"), _SQL_NAMES, 0, "sql", "text"),
    **_table(("sql-injection", "sql"), ".fetch .fetchrow .fetchval .fetch_all .fetch_one", 0, "query", when=_is_query),
    "django.db.models.QuerySet.extra": Sink("sql-injection", "sql", ("where", "select", "tables", "order_by")),
    ".extra": Sink("sql-injection", "sql", ("where", "select", "tables", "order_by")),
    **_table(("command-injection", "command"), _SHELL, 0, "cmd", "command"),
    **_table(("command-injection", "command"), _RUN, 0, "args", when=_with_shell),
    **_table(("command-injection", "command"), _SPAWN, 0),
    **_table(("path-traversal", "path"), _PATH, 0, "file", "path", "filename", "path_or_file", "name"),
    **_table(("path-traversal", "path"), _PATH_METHODS, -1),
    **_table(("path-traversal", "path"), _PATH_PAIRS, 0, 1, "src", "dst"),
    **_table(("server-side-request-forgery", "ssrf"), _REQUEST, 0, "url"),
    **{
        f"{client}.{verb}": Sink("server-side-request-forgery", "ssrf", (0, "url"))
        for client in _CLIENTS
        for verb in _VERBS
    },
    **{
        f"{client}.request": Sink("server-side-request-forgery", "ssrf", (1, "url"))
        for client in (*_CLIENTS, "requests", "httpx")
    },
    **_table(("open-redirect", "redirect"), _REDIRECT, 0, "location", "url", "redirect_to", "to"),
    **_table(("cross-site-scripting", "html"), _HTML, 0, "content", "body"),
    **_table(("cross-site-scripting", "html"), _HTML_RESPONSES, 0, "content", "response", "body", when=_html),
    **_table(("cross-site-scripting", "html"), _PLAIN_RESPONSES, 0, "text", "body", "content", when=_html_only),
    "self.write": Sink("cross-site-scripting", "html"),
    **_table(("template-injection", "template"), _TEMPLATE, 0, "source", "text"),
    "eval": Sink("eval-injection", "code"),
    "exec": Sink("code-injection", "code"),
    "compile": Sink("code-injection", "code"),
    "builtins.eval": Sink("eval-injection", "code"),
    "builtins.exec": Sink("code-injection", "code"),
    "execfile": Sink("code-injection", "code"),
    "code.InteractiveInterpreter().runsource": Sink("code-injection", "code"),
    "importlib.import_module": Sink("code-injection", "code"),
    "__import__": Sink("code-injection", "code"),
    "pandas.eval": Sink("eval-injection", "code"),
    **_table(("unsafe-deserialization", "object"), _LOAD, 0, "file", "filepath_or_buffer"),
    "lxml.etree.parse": Sink("xml-external-entity", "xml", (0,), _unsafe_parser, Confidence.MEDIUM),
    "lxml.etree.fromstring": Sink("xml-external-entity", "xml", (0,), _unsafe_parser, Confidence.MEDIUM),
    "lxml.etree.XML": Sink("xml-external-entity", "xml", (0,), _unsafe_parser, Confidence.MEDIUM),
    **_table(("xpath-injection", "xpath"), _XPATH, 0, "path"),
    **_table(("xpath-injection", "xpath"), _XPATH_FIND, 0, when=_is_xpath),
    **_table(("log-injection", "log"), _LOG, 0, 1, 2, 3, 4, "msg", when=_is_logger),
    **_table(("nosql-injection", "nosql"), _NOSQL, 0, "filter", when=_is_mongo),
    **_table(("ldap-injection", "ldap"), _LDAP, 0, 1, 2, "search_filter", "filterstr", "search_base", when=_is_ldap),
    **_table(("regex-injection", "regex"), _REGEX, 0, "pattern"),
    "setattr": Sink("mass-assignment", "mass", (1,)),
    ".__dict__.update": Sink("mass-assignment", "mass", (0,)),
    ".send_header": Sink("header-injection", "header", (0, 1)),
    ".putheader": Sink("header-injection", "header", (1,)),
}


def sink_of(call: Invocation) -> Sink | None:
    """The sink that a call is, under its full name or as a method of any object."""
    sink = SINKS.get(call.name) or SINKS.get("." + call.name.rpartition(".")[2] if "." in call.name else "")
    return sink if sink is not None and sink.when(call) else None


def answers(name: str) -> str:
    """`html` for a call that makes a whole answer; whether it is a page was decided where it was made."""
    sink = SINKS.get(name)
    return "html" if sink is not None and sink.kind in {"html", "redirect"} else ""
