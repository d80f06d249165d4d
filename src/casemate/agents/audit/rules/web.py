"""Rules for what a web application sends and where it goes: pages, redirects, requests, the session."""

from __future__ import annotations

from casemate.agents.audit.rules.rule import Rule
from casemate.finding import Severity

RULES = (
    Rule(
        id="cross-site-scripting",
        cwe="CWE-79",
        name="Improper Neutralization of Input During Web Page Generation ('Cross-site Scripting')",
        severity=Severity.MEDIUM,
        title_en="Cross-site scripting",
        title_zh="跨站脚本（XSS）",
        message_en="Untrusted data is sent as part of a page, so it can run scripts in the reader's browser.",
        message_zh="不可信数据被写入页面，可在读者的浏览器中执行脚本。",
        fix_en="Render a template with automatic escaping, or escape with `markupsafe.escape`.",
        fix_zh="使用自动转义的模板渲染，或用 `markupsafe.escape` 转义。",
        purpose="A browser cannot tell the site's own markup from markup that came with the data.",
        blind="Data that was stored first and comes from a database; templates that switch escaping off inside; "
        "the place in the page: an escaped `javascript:` address is still one.",
        bad="""\
from flask import Flask, request

app = Flask(__name__)

@app.route("/search")
def search():
    return "<h1>Results for " + request.args["q"] + "</h1>"
""",
        good="""\
from flask import Flask, request
from markupsafe import escape

app = Flask(__name__)

@app.route("/search")
def search():
    return "<h1>Results for " + escape(request.args["q"]) + "</h1>"
""",
        sheet="Cross_Site_Scripting_Prevention_Cheat_Sheet",
    ),
    Rule(
        id="autoescape-off",
        cwe="CWE-79",
        name="Improper Neutralization of Input During Web Page Generation ('Cross-site Scripting')",
        severity=Severity.MEDIUM,
        title_en="Templates without automatic escaping",
        title_zh="模板未启用自动转义",
        message_en="Templates of this environment put data into pages as it is.",
        message_zh="该模板环境会把数据原样写入页面。",
        fix_en="Pass `autoescape=jinja2.select_autoescape()`.",
        fix_zh="传入 `autoescape=jinja2.select_autoescape()`。",
        purpose="Jinja2 by itself does not escape; one forgotten filter is a hole.",
        bad="""\
from jinja2 import Environment, FileSystemLoader

pages = Environment(loader=FileSystemLoader("pages"), autoescape=False)
""",
        good="""\
from jinja2 import Environment, FileSystemLoader, select_autoescape

pages = Environment(loader=FileSystemLoader("pages"), autoescape=select_autoescape())
""",
        sheet="Cross_Site_Scripting_Prevention_Cheat_Sheet",
    ),
    Rule(
        id="open-redirect",
        cwe="CWE-601",
        name="URL Redirection to Untrusted Site ('Open Redirect')",
        severity=Severity.MEDIUM,
        title_en="Open redirect",
        title_zh="开放重定向",
        message_en="Untrusted data decides where the browser is sent, so a link to this site can lead anywhere.",
        message_zh="不可信数据决定浏览器的跳转地址，指向本站的链接可以通往任意网站。",
        fix_en="Redirect only to addresses of this site: `url_for`, or a host from a fixed list.",
        fix_zh="只跳转到本站地址：使用 `url_for`，或主机名在固定列表中。",
        purpose="Readers trust the address that they see; the redirect spends that trust.",
        blind="Paths behind a fixed beginning; addresses of this very request.",
        bad="""\
from flask import Flask, redirect, request

app = Flask(__name__)

@app.route("/login")
def login():
    return redirect(request.args.get("next", "/"))
""",
        good="""\
from urllib.parse import urlparse
from flask import Flask, redirect, request

app = Flask(__name__)
HOSTS = {"", "shop.example.com"}

@app.route("/login")
def login():
    target = request.args.get("next", "/")
    if urlparse(target).netloc not in HOSTS:
        target = "/"
    return redirect(target)
""",
        sheet="Unvalidated_Redirects_and_Forwards_Cheat_Sheet",
    ),
    Rule(
        id="server-side-request-forgery",
        cwe="CWE-918",
        name="Server-Side Request Forgery (SSRF)",
        severity=Severity.HIGH,
        title_en="Server-side request forgery",
        title_zh="服务端请求伪造（SSRF）",
        message_en="Untrusted data decides which host the server talks to, so it can reach what only the server can.",
        message_zh="不可信数据决定服务器访问的主机，可借此访问仅服务器可达的资源。",
        fix_en="Take the host from a fixed list; let the data be only a part of the path, quoted.",
        fix_zh="主机取自固定列表；数据只能作为转义后的路径部分。",
        purpose="Inside the network lie services that trust every caller, such as a cloud's metadata.",
        blind="Only who is talked to: a path behind a fixed host is left alone. Names that point inside, "
        "redirects of the answer and rebinding of names.",
        bad="""\
import requests
from flask import Flask, request

app = Flask(__name__)

@app.route("/preview")
def preview():
    return {"size": len(requests.get(request.args["url"], timeout=5).content)}
""",
        good="""\
from urllib.parse import urlparse
import requests
from flask import Flask, abort, request

app = Flask(__name__)
HOSTS = {"images.example.com"}

@app.route("/preview")
def preview():
    url = request.args["url"]
    if urlparse(url).hostname not in HOSTS:
        abort(400)
    return {"size": len(requests.get(url, timeout=5).content)}
""",
        sheet="Server_Side_Request_Forgery_Prevention_Cheat_Sheet",
    ),
    Rule(
        id="trust-boundary",
        cwe="CWE-501",
        name="Trust Boundary Violation",
        severity=Severity.LOW,
        title_en="Untrusted data in the session",
        title_zh="不可信数据进入会话",
        message_en="Untrusted data is put into the session, which later code trusts.",
        message_zh="不可信数据被放入会话，后续代码会信任它。",
        fix_en="Check it first, or keep what the server itself knows.",
        fix_zh="先校验，或只保存服务器自己得出的数据。",
        purpose="What lies in the session looks as if the server had put it there.",
        blind="What later code does with the value. Where the key speaks of who somebody is, a number or a form "
        "does not make it trusted; a look-up in the store or a fixed list does.",
        bad="""\
from flask import Flask, request, session

app = Flask(__name__)

@app.post("/role")
def role():
    session["role"] = request.form["role"]
    return {"ok": True}
""",
        good="""\
from flask import Flask, abort, request, session

app = Flask(__name__)
ROLES = {"buyer", "seller"}

@app.post("/role")
def role():
    if request.form["role"] not in ROLES:
        abort(400)
    session["role"] = request.form["role"]
    return {"ok": True}
""",
    ),
)
