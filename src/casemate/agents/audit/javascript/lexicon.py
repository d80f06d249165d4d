"""The vocabulary of JavaScript: which names bring untrusted data in, which make it harmless, which pass it on. Facts.

A name is an access path with the imports resolved (`child_process.exec`, `@req.query`). Names with `@` are roles:
`@req` and `@res` what a handler is given, `@ctx` Koa's context, `@message` the event of a posted message,
`@event` that of a cloud function, `@entry` a member of an archive.
"""

from __future__ import annotations

from collections.abc import Mapping

from casemate.agents.audit.vocabulary.lexicon import EVERYTHING, KINDS

ALL = frozenset({EVERYTHING})
NO_KINDS: frozenset[str] = frozenset()
_OF_A_PAGE = KINDS - {"html", "code", "redirect"}
"""What a page's own address cannot harm: it stays in the visitor's browser."""
_OF_A_HEADER = frozenset({"redirect"})
"""Who sends the visitor a link does not choose the headers."""
_A_STRING = frozenset({"nosql", "mass"})

WEB = "web"
SOURCES: Mapping[str, tuple[str, frozenset[str]]] = {
    **dict.fromkeys(
        (
            *("@req.query", "@req.body", "@req.files", "@req.file", "@req.payload", "@req.rawBody", "@ctx.query"),
            *("@ctx.request.body", "@ctx.request.query", "@ctx.request.files", "@req.json()", "@req.formData()"),
            *("@event.queryStringParameters", "@event.pathParameters", "@event.multiValueQueryStringParameters"),
            *("@event.body", "useRouter().query", "next/router.useRouter().query"),
        ),
        (WEB, NO_KINDS),
    ),
    **dict.fromkeys(
        (
            *("@req.params", "@req.cookies", "@req.signedCookies", "@req.url", "@req.originalUrl", "@req.path"),
            *("@req.param()", "@req.text()", "@req.nextUrl.searchParams", "@req.nextUrl.search", "@req.cookies.get()"),
            *("@ctx.params", "@ctx.cookies.get()", "@ctx.url", "@ctx.path", "@ctx.querystring", "@ctx.request.url"),
            *("@req.query()", "@ctx.req.query()", "@ctx.req.param()", "@ctx.request.rawBody"),
        ),
        (WEB, _A_STRING),
    ),
    **dict.fromkeys(
        (
            *("@req.headers", "@req.get()", "@req.header()", "@ctx.headers", "@ctx.get()", "@ctx.request.headers"),
            *("@req.hostname", "@req.host", "@event.headers", "@ctx.request.header", "@req.rawHeaders"),
        ),
        (WEB, _A_STRING | _OF_A_HEADER),
    ),
    **dict.fromkeys(
        (
            *("location.hash", "location.search", "location.href", "document.URL", "document.documentURI"),
            *("document.baseURI", "document.referrer", "window.name", "document.cookie", "@message.data"),
            *("react-router-dom.useParams()", "react-router-dom.useSearchParams()", "react-router.useParams()"),
            *("next/navigation.useSearchParams()", "next/navigation.useParams()"),
        ),
        (WEB, _OF_A_PAGE),
    ),
    "process.argv": ("local", _A_STRING),
    **dict.fromkeys(("@entry.path", "@entry.fileName", "@entry.entryName", "@entry.name"), ("archive", NO_KINDS)),
}
"""For each name the kind of source and what it cannot harm from the start."""
CONTAINERS = frozenset(name for name, (_, cleared) in SOURCES.items() if name.startswith("@") and not cleared)
"""Sources that are objects with many fields."""
OWN_ADDRESSES = frozenset(
    {
        *("location.href", "location.hash", "location.search", "document.URL", "document.documentURI"),
        *("document.baseURI", "@req.url", "@req.originalUrl", "@req.path"),
    }
)
"""As a whole these are an address of this very site; to go there is no redirect."""

_MARKUP = frozenset({"html"})
_PIECE = frozenset({"html", "path", "redirect", "ssrf", "header", "log", "ldap"})
CLEANERS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(
        (
            *("parseInt", "parseFloat", "Number", "BigInt", "Boolean", "Date", "isNaN", "Number.parseInt"),
            *("Number.parseFloat", "crypto.createHash().update().digest", "crypto.createHmac().update().digest"),
            *("bcrypt.hash", "bcrypt.hashSync", "bcryptjs.hash", "bcryptjs.hashSync", "bcrypt.compare", "jwt.sign"),
            *("jsonwebtoken.sign", "crypto.randomUUID", "uuid.v4", "Math.floor", "Math.round", "Math.min", "Math.max"),
            *("Math.abs", "Math.ceil", "Math.trunc", "mongoose.Types.ObjectId", "mongodb.ObjectId", "Date.parse"),
            *("bson.ObjectId", "mongodb.ObjectID", "mongoose.Types.ObjectId.createFromHexString", "typeof", "Symbol"),
        ),
        ALL,
    ),
    **dict.fromkeys(
        (
            *("DOMPurify.sanitize", "dompurify.sanitize", "isomorphic-dompurify.sanitize", "sanitize-html", "xss"),
            *("validator.escape", "he.encode", "he.escape", "lodash.escape", "_.escape", "escape-html", "html-escaper"),
            *("html-escaper.escape", "Handlebars.escapeExpression", "handlebars.escapeExpression", "entities.encode"),
            *("Handlebars.Utils.escapeExpression", "entities.escape", "html-entities.encode", "underscore.escape"),
            *("lodash/escape", "lodash.escape", "validator.stripLow", "xss.filterXSS", "escape-goat.htmlEscape"),
            *("escape", "entities.encodeHTML", "entities.escapeUTF8", "CSS.escape", "jQuery.escapeSelector"),
        ),
        _MARKUP,
    ),
    **dict.fromkeys(
        (
            *("ejs.compile()", "handlebars.compile()", "Handlebars.compile()", "pug.compile()", "jade.compile()"),
            *("lodash.template()", "_.template()", "nunjucks.compile()", "eta.compile()"),
        ),
        _MARKUP,
    ),
    "encodeURIComponent": _PIECE,
    "querystring.escape": _PIECE,
    "encodeURI": frozenset({"html", "header", "log"}),
    "path.basename": frozenset({"path"}),
    "path.posix.basename": frozenset({"path"}),
    "path.win32.basename": frozenset({"path"}),
    "sanitize-filename": frozenset({"path"}),
    **dict.fromkeys(("path.extname", "mime-types.lookup", "mime.getType"), frozenset({"path"})),
    **dict.fromkeys(
        (
            "mysql.escape",
            "mysql.escapeId",
            "mysql2.escape",
            "mysql2.escapeId",
            "sqlstring.escape",
            "sqlstring.escapeId",
        ),
        frozenset({"sql"}),
    ),
    **dict.fromkeys(("mysql.format", "mysql2.format", "sqlstring.format", "pg-format"), frozenset({"sql"})),
    **dict.fromkeys(("shell-quote.quote", "shell-escape", "shellwords.escape"), frozenset({"command"})),
    **dict.fromkeys(
        ("escape-string-regexp", "lodash.escapeRegExp", "_.escapeRegExp", "RegExp.escape"), frozenset({"regex"})
    ),
    **dict.fromkeys(("String",), _A_STRING),
    **dict.fromkeys(("mongo-sanitize", "express-mongo-sanitize.sanitize"), frozenset({"nosql"})),
    "JSON.stringify": frozenset({"log", "header", "nosql"}),
}
"""Calls whose result is harmless for these kinds of sink."""
CLEANING_METHODS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("escapeId", "escapeLiteral", "escapeIdentifier"), frozenset({"sql"})),
    **dict.fromkeys(
        (
            *("includes", "startsWith", "endsWith", "indexOf", "lastIndexOf", "search", "test", "localeCompare", "has"),
            *(
                "charCodeAt",
                "codePointAt",
                "some",
                "every",
                "hasOwnProperty",
                "isArray",
                "getTime",
                "findIndex",
                "digest",
            ),
            *("toFixed", "valueOf", "size", "count"),
        ),
        ALL,
    ),
    "toString": _A_STRING,
    "escape": frozenset({"html", "sql"}),
}
"""Methods of untrusted data, or of a library that we do not know, whose result is harmless for these kinds."""
DATABASES = frozenset(
    {"connection", "conn", "pool", "db", "client", "mysql", "pg", "knex", "sequelize", "database", "trx"}
)
"""Words in the name of what a statement is given to."""
DATABASE_PACKAGES = ("mysql", "pg", "knex", "sequelize", "sqlite", "better-sqlite3", "mssql", "oracledb", "typeorm")
PASSING = frozenset(
    {
        *("JSON.parse", "JSON.stringify", "Object.assign", "Object.values", "Object.keys", "Object.entries"),
        *("Object.fromEntries", "Object.freeze", "util.format", "querystring.parse", "querystring.unescape"),
        *("querystring.stringify", "qs.parse", "qs.stringify", "url.parse", "url.resolve", "url.format", "Buffer.from"),
        *("decodeURIComponent", "decodeURI", "unescape", "atob", "btoa", "String", "Array.from", "Array.of"),
        *("Promise.resolve", "Promise.all", "URLSearchParams", "URL", "Array", "Object", "Map", "Set", "String.raw"),
        *("structuredClone", "Response", "Request", "url.URL", "url.URLSearchParams", "Headers", "FormData", "Buffer"),
        *("React.use", "react.use", "react.useMemo", "react.useState", "cookie.parse", "url.fileURLToPath"),
        *("he.decode", "util.inspect", "buffer.Buffer.from", "URL.parse", "jwt.decode", "jsonwebtoken.decode"),
    }
)
"""Calls of libraries whose result holds what they are given."""
PASSING_PACKAGES = ("path.", "lodash.", "_.", "underscore.", "ramda.")
RETURNS_FIRST = frozenset({"util.promisify", "promisify", "Object.freeze", "bluebird.promisify"})
"""Calls that give their first argument back, for what matters here."""
CLEANING_WORDS = frozenset(
    {
        *(
            "escape",
            "sanitize",
            "sanitise",
            "sanitizer",
            "clean",
            "purify",
            "encode",
            "validate",
            "hash",
            "sign",
            "strip",
        ),
        *("escaped", "sanitized", "slugify", "slug", "whitelist", "allowlist", "hmac", "encrypt", "safe"),
    }
)
"""Words in the name of a function of another file that say that it gives back no raw data."""
LOOKING_UP = frozenset(
    {
        *(
            "get",
            "find",
            "fetch",
            "load",
            "lookup",
            "is",
            "has",
            "check",
            "count",
            "save",
            "insert",
            "update",
            "delete",
        ),
        *("remove", "query", "search", "verify", "authenticate", "authorize", "compare", "select", "store", "list"),
    }
)
"""Words in the name of a function of another file that say that it gives back what it has, not what it is given."""
LISTENERS = frozenset({"forEach", "map", "filter", "find", "some", "every", "flatMap", "sort", "findIndex", "findLast"})
"""Methods that call their function with each element."""
ROUTES = frozenset({"get", "post", "put", "patch", "delete", "all", "use", "head", "options", "route"})
APPLICATIONS = frozenset({"app", "router", "server", "fastify", "api", "routes"})
REQUEST_NAMES = frozenset({"req", "request", "_req"})
RESPONSE_NAMES = frozenset({"res", "response", "resp", "reply", "_res"})
ROLES_OF_TYPES: Mapping[str, str] = {
    **dict.fromkeys(("Request", "NextApiRequest", "FastifyRequest", "NextRequest", "IncomingMessage"), "@req"),
    **dict.fromkeys(("Response", "NextApiResponse", "FastifyReply", "ServerResponse"), "@res"),
    "ParameterizedContext": "@ctx",
    **dict.fromkeys(("APIGatewayProxyEvent", "APIGatewayEvent", "APIGatewayProxyEventV2"), "@event"),
}
"""Types of a parameter that tell its role, by the last part of the name."""
DECORATORS = frozenset({"Query", "Param", "Body", "Headers", "UploadedFile", "Cookies", "QueryParam", "BodyParam"})
"""Decorators of a parameter that bind a part of the request to it (NestJS, routing-controllers)."""
GLOBAL_OBJECTS = frozenset({"window", "self", "globalThis", "top", "parent"})
