"""Rules for what a stranger can use up: memory, time, room; and for tests that come too early."""

from __future__ import annotations

from casemate.agents.audit.rules.rule import Rule
from casemate.finding import Severity

RULES = (
    Rule(
        id="unlimited-decompression",
        cwe="CWE-409",
        name="Improper Handling of Highly Compressed Data (Data Amplification)",
        severity=Severity.MEDIUM,
        title_en="Unpacking without a limit",
        title_zh="解压缩没有大小限制",
        message_en="A few kilobytes from outside unpack into gigabytes, and nothing here stops them.",
        message_zh="外部的几千字节数据可以解压成数吉字节，而此处没有任何限制。",
        fix_en="Unpack in pieces up to a limit, `zlib.decompressobj().decompress(data, limit)`; or add up `file_size`.",
        fix_zh="分段解压并设上限：`zlib.decompressobj().decompress(data, limit)`，或先累计 `file_size`。",
        purpose="Deflate packs up to a thousand to one; bombs of bombs pack without end.",
        bad="""\
import zlib
from flask import Flask, request

app = Flask(__name__)

@app.post("/import")
def load():
    text = zlib.decompress(request.get_data())
    return {"length": len(text)}
""",
        good="""\
import zlib
from flask import Flask, request

app = Flask(__name__)

@app.post("/import")
def load():
    text = zlib.decompressobj().decompress(request.get_data(), 1_000_000)
    return {"length": len(text)}
""",
        sheet="Denial_of_Service_Cheat_Sheet",
    ),
    Rule(
        id="unlimited-allocation",
        cwe="CWE-789",
        name="Memory Allocation with Excessive Size Value",
        severity=Severity.MEDIUM,
        title_en="Size or count from outside without a limit",
        title_zh="外部指定的大小或次数没有上限",
        message_en="A number from outside decides how much memory or time is taken; one request can take all of it.",
        message_zh="外部传入的数字决定占用多少内存或时间，一个请求即可耗尽资源。",
        fix_en="Refuse numbers above a limit before they are used: `min(number, LIMIT)`.",
        fix_zh="使用前限制上限：`min(number, LIMIT)`。",
        purpose="`range`, `bytearray` and `sleep` do what they are told, whoever tells them.",
        bad="""\
from flask import Flask, request

app = Flask(__name__)

@app.get("/blank")
def blank():
    size = int(request.args["size"])
    return {"bytes": len(bytearray(size))}
""",
        good="""\
from flask import Flask, request

app = Flask(__name__)

@app.get("/blank")
def blank():
    size = min(int(request.args["size"]), 4096)
    return {"bytes": len(bytearray(size))}
""",
        sheet="Denial_of_Service_Cheat_Sheet",
    ),
    Rule(
        id="entity-expansion",
        cwe="CWE-776",
        name="Improper Restriction of Recursive Entity References in DTDs ('XML Entity Expansion')",
        severity=Severity.MEDIUM,
        title_en="XML entities without a limit",
        title_zh="XML 实体扩展不受限制",
        message_en="The guard against entities that name entities is off, so a short document grows without end.",
        message_zh="防止实体递归扩展的保护被关闭，很短的文档即可无限膨胀。",
        fix_en="Leave out `huge_tree=True` and `forbid_entities=False`.",
        fix_zh="去掉 `huge_tree=True` 和 `forbid_entities=False`。",
        purpose="Ten lines of DTD make ten thousand million words.",
        bad="""\
from lxml import etree

def read(text):
    return etree.fromstring(text, etree.XMLParser(resolve_entities=False, huge_tree=True))
""",
        good="""\
from lxml import etree

def read(text):
    return etree.fromstring(text, etree.XMLParser(resolve_entities=False))
""",
        sheet="XML_Security_Cheat_Sheet",
    ),
    Rule(
        id="check-before-use",
        cwe="CWE-367",
        name="Time-of-check Time-of-use (TOCTOU) Race Condition",
        severity=Severity.LOW,
        title_en="File tested, then opened",
        title_zh="先检查后使用文件",
        message_en="Between the test and the use another process can put another file there.",
        message_zh="在检查与使用之间，其他进程可以换成另一个文件。",
        fix_en="Open the file and handle the error; drop privileges before, instead of asking `os.access`.",
        fix_zh="直接打开并处理错误；应先降低权限，而不是用 `os.access` 询问。",
        purpose="`os.access` answers for the real user and for the past.",
        bad="""\
import os

def store(path, text):
    if os.access(path, os.W_OK):
        with open(path, "w") as target:
            target.write(text)
""",
        good="""\
def store(path, text):
    try:
        with open(path, "w") as target:
            target.write(text)
    except PermissionError:
        return False
    return True
""",
    ),
)
