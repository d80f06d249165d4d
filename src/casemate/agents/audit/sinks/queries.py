"""Where untrusted data changes what is asked: SQL, documents, directories, XML, regular expressions."""

from __future__ import annotations

import ast
import re

from casemate.agents.audit.facts.sink import Invocation
from casemate.agents.audit.facts.values import NOTHING, Value, gather
from casemate.agents.audit.facts.values import Source as Untrusted
from casemate.agents.audit.sinks.table import Table, all_of, built_only, joined, rows, sink

_SQL = ("sql-injection", "sql")
_NOSQL = ("nosql-injection", "nosql")
_LDAP = ("ldap-injection", "ldap")
_NAME = ("ldap-injection", "dn")
_XPATH = ("xpath-injection", "xpath")
_REGEX = ("regex-injection", "regex")

_SQL_TEXT = re.compile(
    r"\b(?:select|insert\s+into|delete\s+from|update\s+\S+\s+set|drop\s+table|create\s+table|sql|query|stmt|statement)\b",
    re.IGNORECASE,
)
_FILTER = re.compile(r"\(\s*[&|!(]*\s*\w+[~<>]?=")
_NO_DATABASE = re.compile(
    r"graphql|graphene|schema|gql|executor|subprocess|threading|command|management", re.IGNORECASE
)
_MONGO = re.compile(r"mongo|motor|\bdb\b|collection|\bcoll\b", re.IGNORECASE)
_LOGICAL = frozenset({"$or", "$and", "$nor", "$match", "$not", "$elemMatch", "$query", "$lookup", "$facet", "pipeline"})
_CODE_KEYS = frozenset({"$where", "$function", "$accumulator"})

_METHODS = (
    ".execute .executemany .executescript .mogrify .copy_expert .exec_driver_sql .execute_sql .execute_async "
    ".executemany_async .callproc .execute_batch .execute_query_dict .execute_insert .read_sql .read_sql_query"
)
_BY_TEXT = (
    ".fetch .fetchrow .fetchval .fetch_all .fetch_one .query .sql .raw_query .execute_query .execute_script .iterate"
)
_NAMES = (
    "sqlalchemy.text sqlalchemy.sql.text sqlalchemy.sql.expression.text sqlalchemy.literal_column "
    "sqlalchemy.sql.literal_column sqlalchemy.sql.expression.literal_column sqlalchemy.DDL sqlalchemy.schema.DDL "
    "flask_sqlalchemy.SQLAlchemy().text sqlmodel.text django.db.models.expressions.RawSQL django.db.models.RawSQL "
    "pandas.read_sql pandas.read_sql_query pandas.io.sql.read_sql .raw peewee.SQL psycopg2.sql.SQL psycopg.sql.SQL "
    "psycopg2.extras.execute_values psycopg2.extras.execute_batch asyncpg.connect().fetch asyncpg.connect().fetchrow "
    "asyncpg.connect().fetchval asyncpg.create_pool().fetch asyncpg.create_pool().fetchrow duckdb.sql duckdb.query "
    "duckdb.execute duckdb.connect().sql duckdb.connect().query google.cloud.bigquery.Client().query "
    "sqlalchemy.sql.text().columns records.Database().query pony.orm.Database().select pony.orm.Database().get "
    "pony.orm.Database().execute pony.orm.Database().exists pony.orm.raw_sql pony.orm.select_by_sql "
    ".select_by_sql .get_by_sql tortoise.expressions.RawSQL django.db.models.sql.where.ExtraWhere"
)
_SECOND = frozenset({"psycopg2.extras.execute_values", "psycopg2.extras.execute_batch"})
_CYPHER = "neo4j.GraphDatabase.driver().session().run py2neo.Graph().run neo4j.GraphDatabase.driver().execute_query"
_EXPRESSION_TEXTS = ("FilterExpression", "KeyConditionExpression", "ConditionExpression", "UpdateExpression")
_FIND = (
    ".find_one .find .delete_one .delete_many .update_one .update_many .replace_one .count_documents .aggregate "
    ".find_one_and_update .find_one_and_delete .find_one_and_replace .find_raw_batches .find_one_or_404"
)
_DIRECTORY = ".search_s .search_st .search_ext .search_ext_s"
_NAMED = (
    ".simple_bind_s .simple_bind .bind_s .delete_s .modify_s .modify_ext_s .add_s .add_ext_s .passwd_s .rename_s "
    ".compare_s ldap3.Connection().delete ldap3.Connection().modify ldap3.Connection().add ldap3.Connection().modify_dn"
)
_EXPRESSIONS = ".xpath lxml.etree.XPath lxml.etree.ETXPath elementpath.XPath2Parser"
_PATTERNS = (
    "re.compile re.match re.search re.fullmatch re.findall re.finditer re.sub re.subn re.split regex.compile "
    "regex.match regex.search regex.sub regex.findall regex.fullmatch"
)


def _is_database(call: Invocation) -> bool:
    spread = bool(call.node.args) and isinstance(call.node.args[0], ast.Starred)
    return not spread and not _NO_DATABASE.search(call.name)


def _is_query(call: Invocation) -> bool:
    """For method names that not only databases have: the argument reads like SQL."""
    return bool(call.node.args) and bool(_SQL_TEXT.search(ast.unparse(call.node.args[0]))) and _is_database(call)


def _statement(call: Invocation) -> Value:
    return (
        call.argument(1, "sql")
        if call.name in _SECOND
        else all_of((call.argument(0, "sql"), call.argument(-1, "text")))
    )


def _is_mongo(call: Invocation) -> bool:
    """A query document: a dict with untrusted members, or untrusted JSON itself; never a plain string."""
    query = call.argument(0, "filter")
    if query.items is not None or "json" in query.marks:
        return query.items is not None or not call.name.endswith(".find") or bool(_MONGO.search(call.name))
    passed = all(isinstance(origin, Untrusted) and origin.kind == "parameter" for origin in query.taints)
    return not passed and (not call.name.endswith(".find") or bool(_MONGO.search(call.name)))


def _conditions(query: Value) -> Value:
    """The values of a query document that may bring operators; what stands under `$eq` and its like is compared."""
    if query.items is None:
        return query
    found = [Value(taints=query.taints)]
    for key, item in query.items.items():
        if isinstance(key, int) or key in _LOGICAL or not str(key).startswith("$"):
            found.append(_conditions(item))
    return gather(*found)


def _query_code(call: Invocation) -> Value:
    """Text that the database runs as code."""
    return gather(*_code_in(call.argument(0, "filter")))


def _code_in(query: Value) -> list[Value]:
    found: list[Value] = []
    for key, item in (query.items or {}).items():
        found += [item] if key in _CODE_KEYS else _code_in(item)
    return found


def _replacement(call: Invocation) -> Value:
    """Untrusted JSON under `$set` decides which fields of a document are set."""
    change = call.argument(1, "update").items or {}
    fields = change.get("$set")
    return (
        Value(taints=fields.taints) if fields is not None and not fields.items and "json" in fields.marks else NOTHING
    )


def _is_ldap(call: Invocation) -> bool:
    """Whether `.search` belongs to a directory: by its owner, or by a filter in brackets."""
    shown = any(_FILTER.search(ast.unparse(argument)) for argument in call.node.args)
    return "ldap" in call.name.lower() or shown or "search_filter" in call.keywords


def _base(call: Invocation) -> Value:
    return built_only(all_of((call.argument(0, "search_base"), call.argument(-1, "base"), call.argument(-1, "dn"))))


def _user(call: Invocation) -> Value:
    return built_only(call.argument(1, "user"))


def _bound(call: Invocation) -> Value:
    return built_only(all_of((call.argument(0, "who"), call.argument(-1, "dn"))))


def _is_xpath(call: Invocation) -> bool:
    name = call.name.lower()
    return any(word in name for word in ("etree", "xml", "elementtree", "objectify"))


TABLE: Table = joined(
    (
        rows(sink(_SQL, 0, "sql", "query", "operation", "statement", when=_is_database), _METHODS),
        rows(sink(_SQL, 0, "query", "sql", when=_is_query), _BY_TEXT),
        rows(sink(_SQL, reach=_statement), _NAMES),
        rows(sink(_SQL, "where", "select", "tables", "order_by"), ".extra"),
        rows(sink(("nosql-injection", "sql")), _CYPHER),
        rows(sink(("nosql-injection", "sql"), *_EXPRESSION_TEXTS), ".scan .query .update_item .put_item .delete_item"),
        rows(sink(_NOSQL, when=_is_mongo, reach=lambda call: _conditions(call.argument(0, "filter"))), _FIND),
        rows(sink(("nosql-injection", "code"), reach=_query_code), _FIND),
        rows(sink(_NOSQL, "__raw__"), ".objects"),
        rows(sink(("mass-assignment", "mass"), reach=_replacement), ".update_one .update_many .find_one_and_update"),
        rows(sink(_LDAP, 2, "filterstr"), _DIRECTORY),
        rows(sink(_NAME, reach=_base), _DIRECTORY),
        rows(sink(_LDAP, 1, 2, "search_filter", "filterstr", when=_is_ldap), ".search"),
        rows(sink(_NAME, when=_is_ldap, reach=_base), ".search"),
        rows(sink(_NAME, reach=_bound), _NAMED),
        rows(sink(_NAME, reach=_user), "ldap3.Connection"),
        rows(sink(_XPATH, 0, "path", "_path"), _EXPRESSIONS),
        rows(sink(_XPATH, 1, "path"), "elementpath.select elementpath.iter_select"),
        rows(sink(_XPATH, 0, "path", when=_is_xpath), ".find .findall .findtext .iterfind"),
        rows(sink(_REGEX, 0, "pattern"), _PATTERNS),
    )
)
