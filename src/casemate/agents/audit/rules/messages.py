"""Rules for texts in which a line break means something: headers of answers and letters, logs."""

from __future__ import annotations

from casemate.agents.audit.rules.rule import Rule
from casemate.finding import Severity

RULES = (
    Rule(
        id="header-injection",
        cwe="CWE-113",
        name="Improper Neutralization of CRLF Sequences in HTTP Headers ('HTTP Request/Response Splitting')",
        severity=Severity.MEDIUM,
        title_en="Header injection",
        title_zh="HTTP 头注入",
        message_en="Untrusted data becomes a header as it is; a line break in it starts a header of its own.",
        message_zh="不可信数据原样写入 HTTP 头，其中的换行可以添加新的头部。",
        fix_en="Remove line breaks from the value, or quote it.",
        fix_zh="去除值中的换行，或进行编码。",
        purpose="`http.server` writes headers as they are given.",
        blind="Werkzeug (Flask, Quart), Django, Starlette, aiohttp, tornado, bottle and falcon refuse line "
        "breaks in values, so nothing is said there; `http.server`, `http.client.putheader` and bare WSGI "
        "servers do not.",
        bad="""\
from http.server import BaseHTTPRequestHandler

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(302)
        self.send_header("X-Trace", self.headers["X-Trace"])
        self.end_headers()
""",
        good="""\
from http.server import BaseHTTPRequestHandler

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(302)
        self.send_header("X-Trace", self.headers["X-Trace"].replace("\\n", "").replace("\\r", ""))
        self.end_headers()
""",
    ),
    Rule(
        id="mail-header-injection",
        cwe="CWE-93",
        name="Improper Neutralization of CRLF Sequences ('CRLF Injection')",
        severity=Severity.MEDIUM,
        title_en="Header injection in a letter",
        title_zh="邮件头注入",
        message_en="Untrusted data becomes part of a letter's raw text; a line break in it adds headers such as Bcc.",
        message_zh="不可信数据被拼入邮件原文，其中的换行可以添加 Bcc 等邮件头。",
        fix_en="Build the letter with `email.message.EmailMessage`, which refuses line breaks in headers.",
        fix_zh="用 `email.message.EmailMessage` 构造邮件，它会拒绝邮件头中的换行。",
        purpose="`smtplib` sends the text as it is given; its head ends at the first empty line, whoever wrote it.",
        blind="`email.message` refuses line breaks itself. Bodies of letters; services that are asked over HTTP.",
        bad="""\
import smtplib
from flask import Flask, request

app = Flask(__name__)

@app.post("/contact")
def contact():
    text = "To: office@shop.example\\r\\nSubject: " + request.form["subject"] + "\\r\\n\\r\\n"
    with smtplib.SMTP("localhost") as mail:
        mail.sendmail("shop@shop.example", ["office@shop.example"], text)
    return {"ok": True}
""",
        good="""\
import smtplib
from email.message import EmailMessage
from flask import Flask, request

app = Flask(__name__)

@app.post("/contact")
def contact():
    letter = EmailMessage()
    letter["To"], letter["Subject"] = "office@shop.example", request.form["subject"]
    with smtplib.SMTP("localhost") as mail:
        mail.send_message(letter)
    return {"ok": True}
""",
    ),
    Rule(
        id="log-injection",
        cwe="CWE-117",
        name="Improper Output Neutralization for Logs",
        severity=Severity.LOW,
        title_en="Log injection",
        title_zh="日志注入",
        message_en="Untrusted data goes into the log as it is; a line break in it forges an entry.",
        message_zh="不可信数据原样写入日志，其中的换行可以伪造日志条目。",
        fix_en="Log it with `%r`, or remove line breaks.",
        fix_zh="用 `%r` 记录，或去除换行。",
        purpose="Who reads the log cannot tell a forged line from a real one.",
        blind="Formatters that write JSON and structured fields (`extra`, structlog's keywords) quote for "
        "themselves; files that the program writes without a logger.",
        bad="""\
import logging
from flask import Flask, request

app = Flask(__name__)

@app.route("/visit")
def visit():
    logging.info("visit of %s", request.args["name"])
    return {"ok": True}
""",
        good="""\
import logging
from flask import Flask, request

app = Flask(__name__)

@app.route("/visit")
def visit():
    logging.info("visit of %r", request.args["name"])
    return {"ok": True}
""",
        sheet="Logging_Cheat_Sheet",
    ),
    Rule(
        id="secret-in-log",
        cwe="CWE-532",
        name="Insertion of Sensitive Information into Log File",
        severity=Severity.MEDIUM,
        title_en="Secret in a log",
        title_zh="日志中的敏感信息",
        message_en="A password or key goes into the log, where many may read it.",
        message_zh="口令或密钥被写入日志，可被许多人读取。",
        fix_en="Do not log it; log who and when.",
        fix_zh="不要记录它，只记录用户和时间。",
        purpose="Logs are copied, kept and read by more people than the store of passwords.",
        bad="""\
import logging

def login(name, password):
    logging.info("login %s %s", name, password)
""",
        good="""\
import logging

def login(name, password):
    logging.info("login %s, %d characters", name, len(password))
""",
        sheet="Logging_Cheat_Sheet",
    ),
)
