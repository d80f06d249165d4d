"""Rules for untrusted data that is run or unpacked: commands, code, templates, serialised objects, XML, attributes."""

from __future__ import annotations

from casemate.agents.audit.rules.rule import Rule
from casemate.finding import Severity

RULES = (
    Rule(
        id="command-injection",
        cwe="CWE-78",
        name="Improper Neutralization of Special Elements used in an OS Command ('OS Command Injection')",
        severity=Severity.CRITICAL,
        title_en="Command injection",
        title_zh="命令注入",
        message_en="Untrusted data becomes part of a command, so it can run other programs.",
        message_zh="不可信数据被拼入操作系统命令，攻击者可以执行其他程序。",
        fix_en="Pass a list of arguments without a shell; where a shell is needed, quote with `shlex.quote`.",
        fix_zh="以参数列表方式调用且不使用 shell；必须用 shell 时用 `shlex.quote` 转义。",
        purpose="A shell reads separators, pipes and substitutions in the text that it is given.",
        blind="Arguments in a list, even ones that begin with a dash; programs that read a command from a file "
        "or the environment; the program's name where it comes from the command line of who runs it.",
        bad="""\
import subprocess
from flask import Flask, request

app = Flask(__name__)

@app.route("/ping")
def ping():
    done = subprocess.run(f"ping -c 1 {request.args['host']}", shell=True)
    return {"code": done.returncode}
""",
        good="""\
import subprocess
from flask import Flask, request

app = Flask(__name__)

@app.route("/ping")
def ping():
    done = subprocess.run(["ping", "-c", "1", "--", request.args["host"]])
    return {"code": done.returncode}
""",
        sheet="OS_Command_Injection_Defense_Cheat_Sheet",
    ),
    Rule(
        id="eval-injection",
        cwe="CWE-95",
        name="Improper Neutralization of Directives in Dynamically Evaluated Code ('Eval Injection')",
        severity=Severity.CRITICAL,
        title_en="Untrusted text is evaluated",
        title_zh="对不可信文本求值（eval 注入）",
        message_en="Untrusted data is evaluated as code, so it can do whatever this program can.",
        message_zh="不可信数据被当作代码求值，攻击者可以执行任意代码。",
        fix_en="Use `ast.literal_eval` for literals, or look the wish up in a table of what is allowed.",
        fix_zh="仅需字面量时用 `ast.literal_eval`；否则从允许的操作表中查找。",
        purpose="`eval` runs calls and imports; no filter on its text is complete.",
        blind="Look-alikes that only take literals (`ast.literal_eval`, `json`). A tree that was checked node "
        "by node before it is compiled counts as unchecked.",
        bad="""\
from flask import Flask, request

app = Flask(__name__)

@app.route("/sum")
def total():
    return {"total": eval(request.args["expression"])}
""",
        good="""\
import ast
from flask import Flask, request

app = Flask(__name__)

@app.route("/sum")
def total():
    return {"total": sum(ast.literal_eval(request.args["expression"]))}
""",
    ),
    Rule(
        id="code-injection",
        cwe="CWE-94",
        name="Improper Control of Generation of Code ('Code Injection')",
        severity=Severity.CRITICAL,
        title_en="Code injection",
        title_zh="代码注入",
        message_en="Untrusted data becomes code that is compiled, executed or imported.",
        message_zh="不可信数据变成被编译、执行或导入的代码。",
        fix_en="Choose the function or module from a fixed table by the untrusted name.",
        fix_zh="用不可信的名称在固定表中查找函数或模块，而不是执行它。",
        purpose="Executed text has all the rights of the program.",
        blind="`getattr` with an untrusted name; modules that the command line names, which is what it is for.",
        bad="""\
import importlib
from flask import Flask, request

app = Flask(__name__)

@app.route("/plugin")
def plugin():
    return {"name": importlib.import_module(request.args["name"]).TITLE}
""",
        good="""\
import importlib
from flask import Flask, request

app = Flask(__name__)
PLUGINS = {"csv": "shop.export_csv", "xml": "shop.export_xml"}

@app.route("/plugin")
def plugin():
    return {"name": importlib.import_module(PLUGINS[request.args["name"]]).TITLE}
""",
    ),
    Rule(
        id="template-injection",
        cwe="CWE-1336",
        name="Improper Neutralization of Special Elements Used in a Template Engine",
        severity=Severity.CRITICAL,
        title_en="Template injection",
        title_zh="模板注入",
        message_en="Untrusted data becomes the source of a template, whose expressions the server evaluates.",
        message_zh="不可信数据成为模板源码，其中的表达式会在服务器上求值。",
        fix_en="Keep the template constant and pass the data as a variable.",
        fix_zh="模板保持不变，把数据作为变量传入。",
        purpose="Template expressions reach Python objects, and from them the whole program.",
        blind="`str.format` with a chosen format; templates that lie in a database. Jinja's sandbox counts as "
        "safe, `string.Template` has nothing to reach.",
        bad="""\
from flask import Flask, render_template_string, request

app = Flask(__name__)

@app.route("/hello")
def hello():
    return render_template_string("<p>Hello " + request.args["name"] + "</p>")
""",
        good="""\
from flask import Flask, render_template_string, request

app = Flask(__name__)

@app.route("/hello")
def hello():
    return render_template_string("<p>Hello {{ name }}</p>", name=request.args["name"])
""",
    ),
    Rule(
        id="unsafe-deserialization",
        cwe="CWE-502",
        name="Deserialization of Untrusted Data",
        severity=Severity.HIGH,
        title_en="Unsafe deserialisation",
        title_zh="不安全的反序列化",
        message_en="This loader builds any object that its input names, which runs code of the sender's choice.",
        message_zh="该加载器会按输入构造任意对象，从而执行发送者指定的代码。",
        fix_en="Use a data format (`json`, `yaml.safe_load`), or check a signature before loading.",
        fix_zh="使用纯数据格式（`json`、`yaml.safe_load`），或在加载前验证签名。",
        purpose="Pickle and unsafe YAML name functions to call while they are read.",
        blind="A signature that was checked before (`hmac.compare_digest`, itsdangerous, Fernet) makes loading "
        "safe, whoever holds the key. Files of the program itself.",
        bad="""\
import pickle
from flask import Flask, request

app = Flask(__name__)

@app.post("/basket")
def basket():
    return {"items": len(pickle.loads(request.get_data()))}
""",
        good="""\
import json
from flask import Flask, request

app = Flask(__name__)

@app.post("/basket")
def basket():
    return {"items": len(json.loads(request.get_data()))}
""",
        sheet="Deserialization_Cheat_Sheet",
    ),
    Rule(
        id="xml-external-entity",
        cwe="CWE-611",
        name="Improper Restriction of XML External Entity Reference",
        severity=Severity.HIGH,
        title_en="XML external entities",
        title_zh="XML 外部实体（XXE）",
        message_en="This parser expands entities, so a document can read files and reach other hosts.",
        message_zh="该解析器会展开实体，文档可借此读取文件或访问其他主机。",
        fix_en="Use `etree.XMLParser(resolve_entities=False, no_network=True)` or defusedxml.",
        fix_zh="使用 `etree.XMLParser(resolve_entities=False, no_network=True)` 或 defusedxml。",
        purpose="A document type may declare entities that stand for files or addresses.",
        blind="The parsers of the standard library do not fetch external entities unless told to, so only that "
        "is flagged. Lxml 5 no longer expands external ones by default; below it does, hence the medium "
        "confidence.",
        bad="""\
from flask import Flask, request
from lxml import etree

app = Flask(__name__)

@app.post("/order")
def order():
    parser = etree.XMLParser(resolve_entities=True)
    return {"tag": etree.fromstring(request.get_data(), parser).tag}
""",
        good="""\
from flask import Flask, request
from lxml import etree

app = Flask(__name__)

@app.post("/order")
def order():
    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    return {"tag": etree.fromstring(request.get_data(), parser).tag}
""",
        sheet="XML_External_Entity_Prevention_Cheat_Sheet",
    ),
    Rule(
        id="mass-assignment",
        cwe="CWE-915",
        name="Improperly Controlled Modification of Dynamically-Determined Object Attributes",
        severity=Severity.MEDIUM,
        title_en="Mass assignment",
        title_zh="批量赋值",
        message_en="Untrusted data decides which attributes are set, so it can set ones that it should not.",
        message_zh="不可信数据决定设置哪些属性，攻击者可以设置本不该设置的属性。",
        fix_en="Name the fields that may be set.",
        fix_zh="明确列出允许设置的字段。",
        purpose="`Model(**request.json)` also takes `is_admin`.",
        blind="Models that check their fields (pydantic, forms, serialisers); fields that the program names "
        "itself, or keys that were compared with a list.",
        bad="""\
from flask import Flask, request
from shop.models import current_user

app = Flask(__name__)

@app.post("/profile")
def profile():
    for key, value in request.get_json().items():
        setattr(current_user, key, value)
    return {"ok": True}
""",
        good="""\
from flask import Flask, request
from shop.models import current_user

app = Flask(__name__)
FIELDS = {"name", "city"}

@app.post("/profile")
def profile():
    for key, value in request.get_json().items():
        if key in FIELDS:
            setattr(current_user, key, value)
    return {"ok": True}
""",
        sheet="Mass_Assignment_Cheat_Sheet",
    ),
)
