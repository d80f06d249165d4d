"""Rules for what browsers are told: cookies of other sites, other origins; and for who may connect at all."""

from __future__ import annotations

from casemate.agents.audit.rules.rule import Rule
from casemate.finding import Severity

RULES = (
    Rule(
        id="cookie-for-other-sites",
        cwe="CWE-1275",
        name="Sensitive Cookie with Improper SameSite Attribute",
        severity=Severity.LOW,
        title_en="Cookie sent with requests of other sites",
        title_zh="Cookie 会随其他站点的请求发送",
        message_en="`SameSite=None` sends this cookie along when another site makes the browser ask.",
        message_zh="`SameSite=None` 使其他网站触发的请求也携带该 Cookie。",
        fix_en="Set `samesite='Lax'`, or `'Strict'`.",
        fix_zh="设置 `samesite='Lax'` 或 `'Strict'`。",
        purpose="A request that another site forged is only worth something with the visitor's cookie.",
        bad="""\
from flask import Flask, make_response
from shop.sessions import fresh

app = Flask(__name__)

@app.route("/login")
def login():
    answer = make_response("ok")
    answer.set_cookie("session_id", fresh(), secure=True, httponly=True, samesite="None")
    return answer
""",
        good="""\
from flask import Flask, make_response
from shop.sessions import fresh

app = Flask(__name__)

@app.route("/login")
def login():
    answer = make_response("ok")
    answer.set_cookie("session_id", fresh(), secure=True, httponly=True, samesite="Lax")
    return answer
""",
        sheet="Cross-Site_Request_Forgery_Prevention_Cheat_Sheet",
    ),
    Rule(
        id="cross-origin-open",
        cwe="CWE-942",
        name="Permissive Cross-domain Security Policy with Untrusted Domains",
        severity=Severity.MEDIUM,
        title_en="Every site may read answers with credentials",
        title_zh="任意站点可携带凭据读取响应",
        message_en="Every origin is let in together with the visitor's cookies, so any site can read for the visitor.",
        message_zh="允许任意来源携带访问者的 Cookie，任何网站都能以其身份读取数据。",
        fix_en="List the origins, or leave credentials out.",
        fix_zh="列出允许的来源，或不允许携带凭据。",
        purpose="The same-origin policy is the only wall between two open tabs.",
        bad="""\
from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware

app = FastAPI()
app.add_middleware(CORSMiddleware, allow_origins=["*"], allow_credentials=True)
""",
        good="""\
from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware

app = FastAPI()
app.add_middleware(CORSMiddleware, allow_origins=["https://shop.example.com"], allow_credentials=True)
""",
        sheet="HTML5_Security_Cheat_Sheet",
    ),
    Rule(
        id="listens-everywhere",
        cwe="CWE-1327",
        name="Binding to an Unrestricted IP Address",
        severity=Severity.LOW,
        title_en="Socket open to every network",
        title_zh="套接字对所有网络开放",
        message_en="The socket listens on every address of the machine, also on those of networks nobody thought of.",
        message_zh="套接字监听本机所有地址，包括未曾考虑到的网络。",
        fix_en="Bind to `127.0.0.1`, or to the one address that is meant.",
        fix_zh="绑定到 `127.0.0.1`，或所需的那一个地址。",
        purpose="What nobody can reach nobody can attack.",
        bad="""\
import socket

def serve(port):
    listener = socket.socket()
    listener.bind(("0.0.0.0", port))
    listener.listen()
""",
        good="""\
import socket

def serve(port):
    listener = socket.socket()
    listener.bind(("127.0.0.1", port))
    listener.listen()
""",
    ),
)
