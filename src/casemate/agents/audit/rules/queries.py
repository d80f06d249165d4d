"""Rules for queries that are put together from untrusted text: SQL, NoSQL, LDAP, XPath, regular expressions."""

from __future__ import annotations

from casemate.agents.audit.rules.rule import Rule
from casemate.finding import Severity

RULES = (
    Rule(
        id="sql-injection",
        cwe="CWE-89",
        name="Improper Neutralization of Special Elements used in an SQL Command ('SQL Injection')",
        severity=Severity.HIGH,
        title_en="SQL injection",
        title_zh="SQL 注入",
        message_en="Untrusted data becomes part of an SQL statement, so it can change what the statement does.",
        message_zh="不可信数据被拼入 SQL 语句，攻击者可以改变语句的含义。",
        fix_en="Bind values as parameters (`?` in sqlite3). A table or column name cannot be bound: "
        "choose it from a fixed list.",
        fix_zh="用参数绑定传值（sqlite3 用 `?`）。表名、列名无法绑定，应从固定的允许列表中选取。",
        purpose="A statement is code. Text that reaches it by concatenation or formatting is executed with it.",
        blind="Statements that come out of the database or a file; names of columns that a mapper of objects "
        "checks itself; an escape of one's own is not judged, so it counts as none.",
        bad="""\
import sqlite3
from flask import Flask, request

app = Flask(__name__)

@app.route("/user")
def user():
    db = sqlite3.connect("app.db")
    row = db.execute("SELECT name FROM user WHERE id = " + request.args["id"]).fetchone()
    return {"name": row[0]}
""",
        good="""\
import sqlite3
from flask import Flask, request

app = Flask(__name__)

@app.route("/user")
def user():
    db = sqlite3.connect("app.db")
    row = db.execute("SELECT name FROM user WHERE id = ?", (request.args["id"],)).fetchone()
    return {"name": row[0]}
""",
        sheet="SQL_Injection_Prevention_Cheat_Sheet",
    ),
    Rule(
        id="nosql-injection",
        cwe="CWE-943",
        name="Improper Neutralization of Special Elements in Data Query Logic",
        severity=Severity.HIGH,
        title_en="NoSQL injection",
        title_zh="NoSQL 注入",
        message_en="Untrusted JSON becomes part of a query document, so it can bring its own operators.",
        message_zh="不可信的 JSON 进入查询文档，攻击者可以带入自己的查询操作符。",
        fix_en="Convert each field to the type that it must have (`str(...)`), and never pass `$where` text.",
        fix_zh="把每个字段转换成应有的类型（如 `str(...)`），不要把文本传给 `$where`。",
        purpose='A field that should be text may be `{"$ne": ""}` when it comes from JSON, and matches everything.',
        blind="Text of forms and addresses, which can hold no operator; what is stored (`insert_one`); values "
        "under `$eq` and its like, which are only compared. `find` on an object that does not look like a "
        "collection.",
        bad="""\
from flask import Flask, jsonify, request
from pymongo import MongoClient

app = Flask(__name__)
users = MongoClient().shop.users

@app.post("/login")
def login():
    body = request.get_json()
    found = users.find_one({"name": body["name"], "pin": body["pin"]})
    return jsonify(ok=found is not None)
""",
        good="""\
from flask import Flask, jsonify, request
from pymongo import MongoClient

app = Flask(__name__)
users = MongoClient().shop.users

@app.post("/login")
def login():
    body = request.get_json()
    found = users.find_one({"name": str(body["name"]), "pin": str(body["pin"])})
    return jsonify(ok=found is not None)
""",
    ),
    Rule(
        id="ldap-injection",
        cwe="CWE-90",
        name="Improper Neutralization of Special Elements used in an LDAP Query ('LDAP Injection')",
        severity=Severity.HIGH,
        title_en="LDAP injection",
        title_zh="LDAP 注入",
        message_en="Untrusted data becomes part of an LDAP filter or name, so it can widen the search.",
        message_zh="不可信数据进入 LDAP 过滤器或名称，攻击者可以扩大查询范围。",
        fix_en="Escape it with `ldap.filter.escape_filter_chars` (filters) or `ldap.dn.escape_dn_chars` (names).",
        fix_zh="过滤器用 `ldap.filter.escape_filter_chars` 转义，名称用 `ldap.dn.escape_dn_chars` 转义。",
        purpose="Brackets and stars have a meaning in filters; unescaped they turn one entry into all of them.",
        blind="Filters and names are escaped in different ways, and only the right one counts. A whole name "
        "from outside, as a login of its own, is left alone.",
        bad="""\
import ldap
from flask import Flask, request

app = Flask(__name__)

@app.route("/person")
def person():
    directory = ldap.initialize("ldap://directory")
    found = directory.search_s("dc=shop", ldap.SCOPE_SUBTREE, f"(uid={request.args['uid']})")
    return {"count": len(found)}
""",
        good="""\
import ldap
from flask import Flask, request
from ldap.filter import escape_filter_chars

app = Flask(__name__)

@app.route("/person")
def person():
    directory = ldap.initialize("ldap://directory")
    found = directory.search_s("dc=shop", ldap.SCOPE_SUBTREE, f"(uid={escape_filter_chars(request.args['uid'])})")
    return {"count": len(found)}
""",
        sheet="LDAP_Injection_Prevention_Cheat_Sheet",
    ),
    Rule(
        id="xpath-injection",
        cwe="CWE-643",
        name="Improper Neutralization of Data within XPath Expressions ('XPath Injection')",
        severity=Severity.HIGH,
        title_en="XPath injection",
        title_zh="XPath 注入",
        message_en="Untrusted data becomes part of an XPath expression, so it can select other nodes.",
        message_zh="不可信数据进入 XPath 表达式，攻击者可以选取其他节点。",
        fix_en="Pass it as an XPath variable: `tree.xpath('//user[@name=$name]', name=name)`.",
        fix_zh="用 XPath 变量传值：`tree.xpath('//user[@name=$name]', name=name)`。",
        purpose="A quote in the data ends the literal, and what follows is part of the expression.",
        blind="XPath variables are safe. Expressions of other engines than lxml, ElementTree, elementpath and parsel.",
        bad="""\
from flask import Flask, request
from lxml import etree

app = Flask(__name__)
tree = etree.parse("users.xml")

@app.route("/mail")
def mail():
    found = tree.xpath("//user[@name='" + request.args["name"] + "']/mail")
    return {"count": len(found)}
""",
        good="""\
from flask import Flask, request
from lxml import etree

app = Flask(__name__)
tree = etree.parse("users.xml")

@app.route("/mail")
def mail():
    found = tree.xpath("//user[@name=$name]/mail", name=request.args["name"])
    return {"count": len(found)}
""",
    ),
    Rule(
        id="regex-injection",
        cwe="CWE-1333",
        name="Inefficient Regular Expression Complexity",
        severity=Severity.MEDIUM,
        title_en="Regular expression from untrusted text",
        title_zh="由不可信文本构成的正则表达式",
        message_en="Untrusted data becomes a regular expression, which can be made to run for hours.",
        message_zh="不可信数据被当作正则表达式，可被构造为长时间运行。",
        fix_en="Escape it with `re.escape`, or search for it as plain text.",
        fix_zh="用 `re.escape` 转义，或按普通文本查找。",
        purpose="Python's matcher backtracks; a chosen expression takes exponential time on a short text.",
        blind="Patterns of a database (`__regex`, `$regex`); engines without backtracking (re2).",
        bad="""\
import re
from flask import Flask, request

app = Flask(__name__)

@app.route("/find")
def find():
    return {"hits": re.findall(request.args["q"], open("notes.txt").read())}
""",
        good="""\
import re
from flask import Flask, request

app = Flask(__name__)

@app.route("/find")
def find():
    return {"hits": re.findall(re.escape(request.args["q"]), open("notes.txt").read())}
""",
    ),
    Rule(
        id="regex-denial-of-service",
        cwe="CWE-1333",
        name="Inefficient Regular Expression Complexity",
        severity=Severity.MEDIUM,
        title_en="Regular expression that can take exponential time",
        title_zh="可能耗费指数时间的正则表达式",
        message_en="This expression can match the same text in many ways; untrusted text can make it run for hours.",
        message_zh="该表达式可用多种方式匹配同一文本，不可信输入可使其长时间运行。",
        fix_en="Let no repetition contain another that matches the same characters; limit the length of the text.",
        fix_zh="避免嵌套且可匹配相同字符的重复，并限制输入长度。",
        purpose="Nested repetition makes a backtracking matcher try every way to split the text.",
        bad="""\
import re
from flask import Flask, request

app = Flask(__name__)

@app.route("/check")
def check():
    return {"ok": re.match(r"^([a-z0-9]+)+@shop$", request.args["mail"]) is not None}
""",
        good="""\
import re
from flask import Flask, request

app = Flask(__name__)

@app.route("/check")
def check():
    return {"ok": re.match(r"^[a-z0-9]+@shop$", request.args["mail"]) is not None}
""",
    ),
)
