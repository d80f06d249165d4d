"""Rules for switches in the wrong position: TLS, debugging, cookies, CSRF, plain transport."""

from __future__ import annotations

from casemate.agents.audit.rules.rule import Rule
from casemate.finding import Severity

RULES = (
    Rule(
        id="certificate-not-verified",
        cwe="CWE-295",
        name="Improper Certificate Validation",
        severity=Severity.HIGH,
        title_en="Certificate or host key is not verified",
        title_zh="未验证证书或主机密钥",
        message_en="The other side's identity is not checked, so anybody on the way can read and change the traffic.",
        message_zh="未检查对端身份，链路上的任何人都能读取和篡改数据。",
        fix_en="Leave verification on; for a private authority pass its certificate (`verify='/path/ca.pem'`).",
        fix_zh="保持验证开启；私有 CA 请传入其证书（`verify='/path/ca.pem'`）。",
        purpose="Encryption without identity only protects against those who do not try.",
        bad="""\
import requests

def rates():
    return requests.get("https://rates.example.com/today", verify=False, timeout=5).json()
""",
        good="""\
import requests

def rates():
    return requests.get("https://rates.example.com/today", timeout=5).json()
""",
        sheet="Transport_Layer_Security_Cheat_Sheet",
    ),
    Rule(
        id="debug-enabled",
        cwe="CWE-489",
        name="Active Debug Code",
        severity=Severity.MEDIUM,
        title_en="Debug mode is on",
        title_zh="调试模式已开启",
        message_en="Debug mode shows source and variables to visitors; Werkzeug's even runs what they type.",
        message_zh="调试模式会向访问者展示源码和变量，Werkzeug 的调试器甚至会执行其输入。",
        fix_en="Turn it off in code, and on by a setting of the developer's machine.",
        fix_zh="在代码中关闭，由开发环境的设置开启。",
        purpose="An interactive debugger on a public address is a shell.",
        bad="""\
from flask import Flask

app = Flask(__name__)

if __name__ == "__main__":
    app.run(debug=True)
""",
        good="""\
from flask import Flask

app = Flask(__name__)

if __name__ == "__main__":
    app.run()
""",
    ),
    Rule(
        id="cookie-without-secure",
        cwe="CWE-614",
        name="Sensitive Cookie in HTTPS Session Without 'Secure' Attribute",
        severity=Severity.MEDIUM,
        title_en="Cookie without Secure",
        title_zh="Cookie 缺少 Secure 属性",
        message_en="A sensitive cookie is also sent over plain HTTP, where it can be read.",
        message_zh="敏感 Cookie 也会通过明文 HTTP 发送，可被窃听。",
        fix_en="Set `secure=True`.",
        fix_zh="设置 `secure=True`。",
        purpose="One plain request is enough to lose a session.",
        bad="""\
from flask import Flask, make_response

app = Flask(__name__)

@app.route("/login")
def login():
    answer = make_response("ok")
    answer.set_cookie("theme", "dark", secure=False)
    return answer
""",
        good="""\
from flask import Flask, make_response

app = Flask(__name__)

@app.route("/login")
def login():
    answer = make_response("ok")
    answer.set_cookie("theme", "dark", secure=True)
    return answer
""",
        sheet="Session_Management_Cheat_Sheet",
    ),
    Rule(
        id="cookie-without-httponly",
        cwe="CWE-1004",
        name="Sensitive Cookie Without 'HttpOnly' Flag",
        severity=Severity.LOW,
        title_en="Cookie without HttpOnly",
        title_zh="Cookie 缺少 HttpOnly 属性",
        message_en="Scripts can read this sensitive cookie, so one injected script steals it.",
        message_zh="脚本可以读取该敏感 Cookie，一次脚本注入即可窃取。",
        fix_en="Set `httponly=True`.",
        fix_zh="设置 `httponly=True`。",
        purpose="A session cookie is for the server; no script needs it.",
        bad="""\
from flask import Flask, make_response

app = Flask(__name__)

@app.route("/login")
def login():
    answer = make_response("ok")
    answer.set_cookie("session_id", "1", secure=True)
    return answer
""",
        good="""\
from flask import Flask, make_response

app = Flask(__name__)

@app.route("/login")
def login():
    answer = make_response("ok")
    answer.set_cookie("session_id", "1", secure=True, httponly=True)
    return answer
""",
        sheet="Session_Management_Cheat_Sheet",
    ),
    Rule(
        id="csrf-protection-off",
        cwe="CWE-352",
        name="Cross-Site Request Forgery (CSRF)",
        severity=Severity.MEDIUM,
        title_en="CSRF protection is off",
        title_zh="CSRF 防护被关闭",
        message_en="Other sites can make a visitor's browser send this request in the visitor's name.",
        message_zh="其他网站可以让访问者的浏览器以其身份发送该请求。",
        fix_en="Leave the protection on; for interfaces without cookies use tokens in a header instead.",
        fix_zh="保持防护开启；不使用 Cookie 的接口请改用请求头令牌。",
        purpose="Browsers attach cookies to requests that other sites start.",
        bad="""\
from flask import Flask

app = Flask(__name__)
app.config["WTF_CSRF_ENABLED"] = False
""",
        good="""\
from flask import Flask

app = Flask(__name__)
app.config["WTF_CSRF_ENABLED"] = True
""",
        sheet="Cross-Site_Request_Forgery_Prevention_Cheat_Sheet",
    ),
    Rule(
        id="cleartext-transport",
        cwe="CWE-319",
        name="Cleartext Transmission of Sensitive Information",
        severity=Severity.LOW,
        title_en="Protocol without encryption",
        title_zh="明文传输协议",
        message_en="This protocol sends names, passwords and data in the clear.",
        message_zh="该协议以明文传输用户名、口令和数据。",
        fix_en="Use SSH, SFTP or `ftplib.FTP_TLS`.",
        fix_zh="使用 SSH、SFTP 或 `ftplib.FTP_TLS`。",
        purpose="Everybody on the way can read it.",
        bad="""\
from ftplib import FTP

def fetch(host):
    return FTP(host).nlst()
""",
        good="""\
from ftplib import FTP_TLS

def fetch(host):
    return FTP_TLS(host).nlst()
""",
        sheet="Transport_Layer_Security_Cheat_Sheet",
    ),
)
