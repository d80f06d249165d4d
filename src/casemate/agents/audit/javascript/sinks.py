"""Where untrusted data does harm in JavaScript: calls and properties, each with its rule. Facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from casemate.agents.audit.facts.values import Value
from casemate.agents.audit.javascript import reaching
from casemate.agents.audit.javascript.notes import Sink
from casemate.agents.audit.javascript.reaching import Invocation
from casemate.finding import Confidence

Reach = Callable[[Invocation], Value]
Entry = tuple[Sink, Reach]

_COMMAND = Sink("command-injection", "command")
_EVAL = Sink("eval-injection", "code")
_CODE = Sink("code-injection", "code")
_PATH = Sink("path-traversal", "path")
_SSRF = Sink("server-side-request-forgery", "ssrf")
_REDIRECT = Sink("open-redirect", "redirect")
_PAGE = Sink("cross-site-scripting", "html")
_SQL = Sink("sql-injection", "sql")
_NOSQL = Sink("nosql-injection", "nosql", Confidence.MEDIUM)
_WHERE = Sink("nosql-injection", "code")  # its text is a program
_TEMPLATE = Sink("template-injection", "template")
_OBJECT = Sink("unsafe-deserialization", "object")
_XPATH = Sink("xpath-injection", "xpath")
_LDAP = Sink("ldap-injection", "ldap")
_XML = Sink("xml-external-entity", "xml")
_REGEX = Sink("regex-injection", "regex")
_SLOW = Sink("regex-denial-of-service", "regex", Confidence.MEDIUM)
_MASS = Sink("mass-assignment", "mass", Confidence.MEDIUM)

_FILES = (
    *("readFile", "readFileSync", "createReadStream", "createWriteStream", "writeFile", "writeFileSync", "appendFile"),
    *("appendFileSync", "unlink", "unlinkSync", "rm", "rmSync", "rmdir", "rmdirSync", "readdir", "readdirSync", "open"),
    *("openSync", "mkdir", "mkdirSync", "readJson", "readJSON", "remove", "removeSync", "outputFile", "truncate"),
)
_PAIRS_OF_FILES = ("copyFile", "copyFileSync", "rename", "renameSync", "copy", "move", "symlink", "link")
_REQUESTS = ("get", "post", "put", "delete", "head", "patch", "request", "stream")
_CLIENTS = ("axios", "got", "request", "needle", "superagent", "node-fetch", "undici", "request-promise", "phin", "ky")
_TEMPLATES = (
    *("ejs.render", "ejs.compile", "pug.render", "pug.compile", "jade.render", "jade.compile", "handlebars.compile"),
    *(
        "Handlebars.compile",
        "nunjucks.renderString",
        "lodash.template",
        "_.template",
        "underscore.template",
        "doT.template",
    ),
    *("dot.template", "swig.render", "hogan.js.compile", "eta.renderString", "eta.Eta().renderString", "twig.twig"),
)

BY_NAME: Mapping[str, Entry] = {
    **dict.fromkeys(
        ("child_process.exec", "child_process.execSync", "shelljs.exec", "execa.command"), (_COMMAND, reaching.first)
    ),
    **dict.fromkeys(("execa.execaCommand", "execa.commandSync", "cross-spawn"), (_COMMAND, reaching.first)),
    **dict.fromkeys(
        (*(f"child_process.{name}" for name in ("spawn", "spawnSync", "execFile", "execFileSync", "fork")), "execa"),
        (_COMMAND, reaching.spawned),
    ),
    **dict.fromkeys(("eval", "execScript"), (_EVAL, reaching.every)),
    "Function": (_CODE, reaching.every),
    **dict.fromkeys(("setTimeout", "setInterval", "setImmediate"), (_EVAL, reaching.script_text)),
    **dict.fromkeys(
        ("vm.runInNewContext", "vm.runInThisContext", "vm.runInContext", "vm.Script", "vm.compileFunction"),
        (_CODE, reaching.first),
    ),
    **{f"{module}.{name}": (_PATH, reaching.first) for module in ("fs", "fs.promises", "fs-extra") for name in _FILES},
    **{
        f"{module}.{name}": (_PATH, reaching.both_paths)
        for module in ("fs", "fs.promises", "fs-extra")
        for name in _PAIRS_OF_FILES
    },
    **dict.fromkeys(_CLIENTS, (_SSRF, reaching.address)),
    **{f"{client}.{name}": (_SSRF, reaching.address) for client in _CLIENTS for name in _REQUESTS},
    **{f"{client}.{name}": (_SSRF, reaching.address) for client in ("http", "https") for name in ("get", "request")},
    **dict.fromkeys(
        ("fetch", "node-fetch.default", "undici.fetch", "cross-fetch", "isomorphic-fetch"), (_SSRF, reaching.address)
    ),
    **dict.fromkeys(
        (
            *("@res.redirect", "@ctx.redirect", "NextResponse.redirect", "next/server.NextResponse.redirect"),
            *("next/navigation.redirect", "Response.redirect", "@res.location", "location.assign", "location.replace"),
            *("@res.status().redirect", "@res.code().redirect"),
        ),
        (_REDIRECT, reaching.target),
    ),
    **dict.fromkeys(
        ("@res.writeHead", "@res.setHeader", "@res.header", "@res.set"), (_REDIRECT, reaching.location_header)
    ),
    **dict.fromkeys(("@res.sendFile", "@res.download", "@res.sendfile"), (_PATH, reaching.rooted)),
    **dict.fromkeys(("document.write", "document.writeln"), (_PAGE, reaching.every)),
    **dict.fromkeys(_TEMPLATES, (_TEMPLATE, reaching.first)),
    **dict.fromkeys(
        (
            *("node-serialize.unserialize", "serialize-to-js.deserialize", "funcster.deepDeserialize", "cryo.parse"),
            *("php-serialize.unserialize", "js-yaml.unsafeLoad"),
        ),
        (_OBJECT, reaching.first),
    ),
    **dict.fromkeys(("xpath.select", "xpath.select1", "xpath.evaluate", "xpath.parse"), (_XPATH, reaching.first)),
    **dict.fromkeys(
        (
            f"{module}.{name}"
            for module in ("libxmljs", "libxmljs2")
            for name in ("parseXml", "parseXmlString", "parseXmlAsync")
        ),
        (_XML, reaching.entities_on),
    ),
    "RegExp": (_REGEX, reaching.first),
    **dict.fromkeys(("Response", "NextResponse", "next/server.NextResponse"), (_PAGE, reaching.web_response)),
}
"""Sinks by the whole access path."""
_MONGO = (
    *("find", "findOne", "findOneAndUpdate", "findOneAndDelete", "updateOne", "updateMany", "deleteOne", "deleteMany"),
    *("countDocuments", "findOneAndReplace", "exists", "count", "remove", "distinct"),
)
_MODEL_METHODS = (
    "create",
    "update",
    "insertMany",
    "findByIdAndUpdate",
    "findOneAndUpdate",
    "updateOne",
    "bulkCreate",
    "build",
)
BY_METHOD: Mapping[str, tuple[Entry, ...]] = {
    **dict.fromkeys(("query", "execute", "raw", "run", "get", "all", "each", "prepare"), ((_SQL, reaching.statement),)),
    **dict.fromkeys(
        ("whereRaw", "orderByRaw", "havingRaw", "groupByRaw", "$queryRawUnsafe", "$executeRawUnsafe", "literal"),
        ((_SQL, reaching.first),),
    ),
    **dict.fromkeys(("where", "andWhere", "orWhere", "having", "orderBy"), ((_SQL, reaching.condition),)),
    **dict.fromkeys(
        _MONGO, ((_NOSQL, reaching.query_document), (_WHERE, reaching.where_text), (_MASS, reaching.fields_of_model))
    ),
    **{
        name: ((_MASS, reaching.fields_of_model), (_MASS, reaching.fields_of_record))
        for name in _MODEL_METHODS
        if name not in _MONGO
    },
    **dict.fromkeys(("test", "match", "matchAll", "replace", "replaceAll", "split"), ((_SLOW, reaching.matched),)),
    "exec": ((_SQL, reaching.statement), (_SLOW, reaching.matched)),
    "assign": ((_MASS, reaching.fields_of_record),),
    "$where": ((_WHERE, reaching.first),),
    **dict.fromkeys(("send", "write", "end"), ((_PAGE, reaching.sent),)),
    **dict.fromkeys(
        ("html", "append", "prepend", "after", "before", "replaceWith", "wrap"), ((_PAGE, reaching.jquery),)
    ),
    "insertAdjacentHTML": ((_PAGE, reaching.second),),
    **dict.fromkeys(("createContextualFragment", "bypassSecurityTrustHtml"), ((_PAGE, reaching.first),)),
    "search": ((_LDAP, reaching.filter_text),),
    "mv": ((_PATH, reaching.uploaded),),
    "redirect": ((_REDIRECT, reaching.target),),
}
"""Sinks by the last part of the access path; what reaches them decides whether it is the one that is meant."""
PROPERTIES: Mapping[str, Sink] = {
    "innerHTML": _PAGE,
    "outerHTML": _PAGE,
    "srcdoc": _PAGE,
    "__html": _PAGE,
}
"""Properties that take markup."""
NAVIGATION = Sink("open-redirect", "redirect")
PAGE = _PAGE
_ANSWERS = frozenset({"send", "write", "end", "redirect"})


def reached(call: Invocation) -> Iterator[tuple[Sink, Value]]:
    """The sinks that a call is, each with what matters of it."""
    found = BY_NAME.get(call.name)
    if found is not None:
        yield found[0], found[1](call)
        return
    if call.method in _ANSWERS and not call.receiver.name.startswith(("@res", "@ctx")):
        return
    for sink, reach in BY_METHOD.get(call.method, ()):
        yield sink, reach(call)
