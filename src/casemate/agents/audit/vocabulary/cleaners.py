"""What makes untrusted data harmless, and for which kinds of sink: by name, whatever the call is told. Facts only.

A cleaner holds in its own context: what escapes a page does nothing for a shell.
"""

from __future__ import annotations

from collections.abc import Mapping

from casemate.agents.audit.vocabulary.lexicon import AMOUNT, EVERYTHING, KINDS

_ALL = frozenset({EVERYTHING})
_PAGE = frozenset({"html"})
NUMBER = KINDS - {"authority"}
"""A number, a date or an identifier: harmless wherever it stands, but still the client's choice of whose it is."""
_PLAIN_WORD = frozenset({"path", "command", "header", "log", "html", "xpath", "ldap", "dn", "template"})
_QUOTED = frozenset({"html", "header", "log", "command"})
_ENCODED = frozenset({"html", "header", "log", "sql", "ldap", "dn", "xpath", "command", "template"})

_DECISIONS = "bool len hash id isinstance issubclass type any all callable math.isnan"
_NUMBERS = (
    "int float complex ord abs round sum divmod hex oct bin pow "
    "uuid.UUID uuid.uuid3 uuid.uuid5 decimal.Decimal fractions.Fraction datetime.date.fromisoformat int.from_bytes "
    "datetime.datetime.fromisoformat datetime.datetime.strptime datetime.date datetime.datetime datetime.timedelta "
    "time.strptime ipaddress.ip_network ipaddress.ip_interface bson.ObjectId bson.objectid.ObjectId numpy.float64 "
    "numpy.int64 dateutil.parser.parse dateutil.parser.isoparse django.utils.dateparse.parse_date "
    "django.utils.dateparse.parse_datetime beanie.PydanticObjectId ulid.ULID.from_str"
)
_DIGESTS = (
    "hmac.new hmac.digest hashlib.md5 hashlib.sha1 hashlib.sha224 hashlib.sha256 hashlib.sha384 hashlib.sha512 "
    "hashlib.sha3_224 hashlib.sha3_256 hashlib.sha3_384 hashlib.sha3_512 hashlib.blake2b hashlib.blake2s hashlib.new "
    "hashlib.pbkdf2_hmac hashlib.scrypt zlib.crc32 zlib.adler32 binascii.crc32 binascii.hexlify hmac.compare_digest "
    "secrets.compare_digest werkzeug.security.generate_password_hash werkzeug.security.check_password_hash "
    "bcrypt.hashpw bcrypt.checkpw django.contrib.auth.hashers.make_password "
    "django.contrib.auth.hashers.check_password passlib.hash.bcrypt.hash passlib.hash.argon2.hash "
    "argon2.PasswordHasher().hash django.utils.crypto.constant_time_compare"
)
_SIGNED = (
    "itsdangerous.URLSafeSerializer().loads itsdangerous.URLSafeTimedSerializer().loads "
    "itsdangerous.Serializer().loads itsdangerous.TimedSerializer().loads itsdangerous.Signer().unsign "
    "itsdangerous.TimestampSigner().unsign itsdangerous.url_safe.URLSafeTimedSerializer().loads "
    "django.core.signing.loads django.core.signing.Signer().unsign django.core.signing.TimestampSigner().unsign "
    "cryptography.fernet.Fernet().decrypt nacl.secret.SecretBox().decrypt nacl.signing.VerifyKey().verify"
)
_ANSWERS = (
    "flask.render_template django.shortcuts.render flask.jsonify django.http.JsonResponse flask.url_for "
    "quart.jsonify django.urls.reverse fastapi.responses.JSONResponse starlette.responses.JSONResponse "
    "aiohttp.web.json_response bottle.template sanic.response.json sanic.json fastapi.responses.ORJSONResponse "
    "fastapi.responses.PlainTextResponse starlette.responses.PlainTextResponse flask.send_file "
    "flask.send_from_directory quart.render_template litestar.Response starlette.responses.FileResponse "
    "fastapi.responses.FileResponse flask.render_template_string django.urls.reverse_lazy render_template "
    "render_template_string jsonify url_for django.http.FileResponse aiohttp.web.FileResponse "
    "rest_framework.response.Response ninja.responses.Response bottle.static_file django.shortcuts.resolve_url"
)
_SYSTEM = (
    "os.path.exists os.path.isfile os.path.isdir os.path.islink os.path.getsize os.path.getmtime os.stat os.access "
    "os.system subprocess.call subprocess.run subprocess.check_call subprocess.Popen subprocess.check_output "
    "subprocess.getoutput open io.open codecs.open aiofiles.open .read_text .read_bytes os.listdir os.scandir os.walk "
    "glob.glob .iterdir .glob django.shortcuts.get_object_or_404 django.shortcuts.get_list_or_404 .exec_command"
)
_STORED = (
    ".execute .executemany .fetchone .fetchall .fetchmany .first .one .one_or_none .scalar .scalars .scalar_one "
    ".filter_by .get_or_404 .first_or_404 .all .filter .find_one .insert_one .insert_many .query .objects.get "
    ".session.get .objects.create .get_object_or_404 .save .commit .add .render_to_response .verify .check_password "
    ".scalar_one_or_none .objects.filter .objects.exclude .get_or_create .fetchval .fetchrow .count_documents "
    ".exec_driver_sql"
)
_DECIDED = (
    ".hexdigest .digest .isoformat .isdigit .isalnum .isalpha .isdecimal .isnumeric .isidentifier .startswith "
    ".endswith .exists .is_file .is_dir .count .index .find .bit_length .timestamp .total_seconds .date .is_absolute "
    ".is_valid"
)
_HTML = (
    "html.escape cgi.escape markupsafe.escape markupsafe.escape_silent flask.escape django.utils.html.escape escape "
    "django.utils.html.conditional_escape django.utils.html.format_html django.utils.html.format_html_join "
    "bleach.clean nh3.clean nh3.clean_text bleach.Cleaner().clean xml.sax.saxutils.escape xml.sax.saxutils.quoteattr "
    "jinja2.escape jinja2.utils.escape tornado.escape.xhtml_escape bottle.html_escape werkzeug.utils.escape "
    "django.utils.html.strip_tags django.template.loader.render_to_string lxml.html.clean.clean_html "
    "lxml_html_clean.clean_html webob.html_escape lxml.html.clean.Cleaner().clean_html "
    "lxml_html_clean.Cleaner().clean_html html_sanitizer.Sanitizer().sanitize django.utils.html.escapejs "
    "django.template.defaultfilters.escape django.template.defaultfilters.force_escape django.utils.html.json_script "
    "markupsafe.Markup.escape markupsafe.Markup().format markupsafe.Markup().join flask.Markup.escape "
    "flask.Markup().format flask.Markup().join jinja2.Markup().format"
)
_SLUGS = "django.utils.text.slugify slugify.slugify django.template.defaultfilters.slugify awesome_slugify.slugify"
_FILE_NAMES = (
    "werkzeug.utils.secure_filename secure_filename django.utils.text.get_valid_filename pathvalidate.sanitize_filename"
)
_LAST_PARTS = (
    "os.path.basename ntpath.basename posixpath.basename werkzeug.utils.safe_join werkzeug.security.safe_join "
    "flask.safe_join flask.helpers.safe_join django.utils._os.safe_join"
)
_SQL = (
    "psycopg2.sql.Identifier psycopg.sql.Identifier psycopg2.sql.Literal psycopg.sql.Literal psycopg2.sql.Placeholder "
    "psycopg.sql.Placeholder psycopg2.extensions.quote_ident psycopg2.extensions.adapt .quote_identifier .quote_name "
    ".quote_ident .escape_string .escape_literal .escape_identifier pymysql.connect().escape MySQLdb.connect().escape "
    "pymysql.connect().literal MySQLdb.connect().literal pymysql.converters.escape_string aiomysql.connect().escape "
    ".identifier_preparer.quote .identifier_preparer.quote_identifier .preparer.quote sqlalchemy.bindparam .bindparams"
)

SANITIZERS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(
        f"{_DIGESTS} {_SIGNED} {_ANSWERS} {_SYSTEM} {_STORED} {_DECIDED}".split(),
        _ALL,
    ),
    **dict.fromkeys(_NUMBERS.split(), NUMBER),
    **dict.fromkeys(_DECISIONS.split(), _ALL),
    **dict.fromkeys(["int", "float", "round", "abs", "math.floor", "math.ceil", "sum", "divmod", "pow"], NUMBER),
    "min": AMOUNT,
    **dict.fromkeys(_HTML.split(), _PAGE),
    **dict.fromkeys(_SLUGS.split(), KINDS - {"session", "authority", "mass", "ssrf", "timing"}),
    **dict.fromkeys(_FILE_NAMES.split(), _PLAIN_WORD),
    **dict.fromkeys(_LAST_PARTS.split(), frozenset({"path"})),
    **dict.fromkeys(_SQL.split(), frozenset({"sql"})),
    **dict.fromkeys(["shlex.quote", "pipes.quote", "shlex.join", "mslex.quote"], frozenset({"command"})),
    **dict.fromkeys(["urllib.parse.quote_plus", "tornado.escape.url_escape", "urllib.quote_plus"], _QUOTED | {"path"}),
    **dict.fromkeys(["urllib.parse.urlencode", "urllib.urlencode", "django.utils.http.urlencode"], _QUOTED | {"path"}),
    **dict.fromkeys(["base64.b64encode", "base64.standard_b64encode", "base64.b32encode"], _ENCODED),
    **dict.fromkeys(["base64.urlsafe_b64encode", "base64.b16encode"], _ENCODED | {"path"}),
    **dict.fromkeys(
        ["json.dumps", "ujson.dumps", "orjson.dumps", "simplejson.dumps"], frozenset({"header", "log", "code"})
    ),
    **dict.fromkeys(["repr", "ascii", "reprlib.repr", "pprint.pformat", ".splitlines"], frozenset({"log", "header"})),
    **dict.fromkeys(["re.escape", "regex.escape"], frozenset({"regex"})),
    **dict.fromkeys(["ldap.filter.escape_filter_chars", "ldap3.utils.conv.escape_filter_chars"], frozenset({"ldap"})),
    **dict.fromkeys(["ldap.dn.escape_dn_chars", "ldap3.utils.dn.escape_rdn"], frozenset({"dn"})),
    **dict.fromkeys(["pickle.dumps", "dill.dumps", "cloudpickle.dumps", "marshal.dumps"], frozenset({"object"})),
    **dict.fromkeys(["io.BytesIO", "io.StringIO"], frozenset({"path", "ssrf"})),
    **dict.fromkeys(
        ["flask.json.htmlsafe_dumps", "jinja2.utils.htmlsafe_json_dumps", "flask.json.tag.dumps"],
        frozenset({"html", "header", "log"}),
    ),
    ".get_absolute_url": frozenset({"redirect", "ssrf"}),
    "ldap.filter.filter_format": frozenset({"ldap"}),
    "ipaddress.ip_address": KINDS - {"ssrf", "authority"},
    "tornado.escape.json_encode": frozenset({"header", "log"}),
    "ast.literal_eval": frozenset({"code"}),
    "str": frozenset({"nosql"}),
}
STATEMENTS = frozenset(
    {
        *("sqlalchemy.select", "sqlalchemy.insert", "sqlalchemy.update", "sqlalchemy.delete", "sqlalchemy.Table"),
        *("sqlalchemy.and_", "sqlalchemy.or_", "sqlalchemy.not_", "sqlalchemy.func", "sqlalchemy.column"),
        *("sqlalchemy.dialects.postgresql.insert", "sqlmodel.select", "sqlalchemy.literal", "sqlalchemy.future.select"),
        *(
            "sqlalchemy.dialects.sqlite.insert",
            "sqlalchemy.dialects.mysql.insert",
            "pypika.Query",
            "boto3.dynamodb.conditions.Attr",
            "boto3.dynamodb.conditions.Key",
        ),
    }
)
"""Makers of statements whose values are bound, by them and by every method of what they make."""
RESTORERS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(["html.unescape", "xml.sax.saxutils.unescape"], _PAGE),
    **dict.fromkeys(["urllib.parse.unquote", "urllib.parse.unquote_plus", "urllib.unquote"], _ENCODED | {"path"}),
    **dict.fromkeys(
        ["base64.b64decode", "base64.urlsafe_b64decode", "base64.b32decode", "base64.b16decode"], _ENCODED | {"path"}
    ),
    **dict.fromkeys(["json.loads", "ujson.loads", "orjson.loads"], frozenset({"header", "log", "code", "nosql"})),
    **dict.fromkeys(["pickle.loads", "dill.loads"], frozenset({"object"})),
}
"""What takes an escape off again, and for which kinds its result is as harmful as before."""
