"""Rules for files: paths, uploads, archives, temporary files, permissions."""

from __future__ import annotations

from casemate.agents.audit.rules.rule import Rule
from casemate.finding import Severity

RULES = (
    Rule(
        id="path-traversal",
        cwe="CWE-22",
        name="Improper Limitation of a Pathname to a Restricted Directory ('Path Traversal')",
        severity=Severity.HIGH,
        title_en="Path traversal",
        title_zh="路径穿越",
        message_en="Untrusted data becomes part of a path, so it can lead out of the folder that was meant.",
        message_zh="不可信数据进入文件路径，可以跳出预期的目录。",
        fix_en="Resolve the path and compare it with the root including its separator "
        "(`os.path.commonpath`, `Path.is_relative_to`), or keep only `os.path.basename`.",
        fix_zh="先解析路径，再连同分隔符与根目录比较（`os.path.commonpath`、`Path.is_relative_to`），"
        "或只保留 `os.path.basename`。",
        purpose="`..` climbs, an absolute path replaces the root, and `/srv/docs-old` also begins with `/srv/docs`.",
        blind="Paths on the command line; open files and uploads as such; storages that refuse to leave their "
        "folder (Django's, `send_from_directory`, `static_file`). Links below the root.",
        bad="""\
import os
from flask import Flask, request

app = Flask(__name__)
ROOT = "/srv/docs"

@app.route("/doc")
def document():
    with open(os.path.join(ROOT, request.args["name"])) as file:
        return {"text": file.read()}
""",
        good="""\
import os
from flask import Flask, abort, request

app = Flask(__name__)
ROOT = "/srv/docs"

@app.route("/doc")
def document():
    path = os.path.realpath(os.path.join(ROOT, request.args["name"]))
    if os.path.commonpath([ROOT, path]) != ROOT:
        abort(404)
    with open(path) as file:
        return {"text": file.read()}
""",
    ),
    Rule(
        id="unrestricted-upload",
        cwe="CWE-434",
        name="Unrestricted Upload of File with Dangerous Type",
        severity=Severity.MEDIUM,
        title_en="Unrestricted upload",
        title_zh="不受限制的文件上传",
        message_en="An uploaded file is stored under a name with an extension of the sender's choice.",
        message_zh="上传文件以发送者任意指定的扩展名保存。",
        fix_en="Accept only extensions of a fixed list, and store under a name of your own.",
        fix_zh="只接受固定列表中的扩展名，并用自己生成的文件名保存。",
        purpose="A file that the server or a browser takes for code runs when it is fetched.",
        blind="Whether the folder is served or its files run; buckets of clouds. The declared content type is "
        "no check, the extension and the format found by an image library are.",
        bad="""\
import os
from flask import Flask, request
from werkzeug.utils import secure_filename

app = Flask(__name__)

@app.post("/photo")
def photo():
    sent = request.files["photo"]
    sent.save(os.path.join("/srv/photos", secure_filename(sent.filename)))
    return {"ok": True}
""",
        good="""\
import os
from flask import Flask, abort, request
from werkzeug.utils import secure_filename

app = Flask(__name__)
IMAGES = {"png", "jpg"}

@app.post("/photo")
def photo():
    sent = request.files["photo"]
    if sent.filename.rsplit(".", 1)[-1].lower() not in IMAGES:
        abort(400)
    sent.save(os.path.join("/srv/photos", secure_filename(sent.filename)))
    return {"ok": True}
""",
        sheet="File_Upload_Cheat_Sheet",
    ),
    Rule(
        id="archive-traversal",
        cwe="CWE-22",
        name="Improper Limitation of a Pathname to a Restricted Directory ('Path Traversal')",
        severity=Severity.MEDIUM,
        title_en="Archive is unpacked without a filter",
        title_zh="解包归档时未过滤成员路径",
        message_en="Members of a tar archive may name paths outside the folder, and links; nothing filters them.",
        message_zh="tar 归档成员可能包含目录之外的路径或链接，这里没有过滤。",
        fix_en='Unpack with `filter="data"`.',
        fix_zh='解包时使用 `filter="data"`。',
        purpose="Before Python 3.14 `extractall` trusts every member's name.",
        bad="""\
import tarfile

def unpack(path, folder):
    with tarfile.open(path) as archive:
        archive.extractall(folder)
""",
        good="""\
import tarfile

def unpack(path, folder):
    with tarfile.open(path) as archive:
        archive.extractall(folder, filter="data")
""",
    ),
    Rule(
        id="insecure-temporary-file",
        cwe="CWE-377",
        name="Insecure Temporary File",
        severity=Severity.MEDIUM,
        title_en="Insecure temporary file",
        title_zh="不安全的临时文件",
        message_en="The name of this temporary file is known before it is made, so another user can be there first.",
        message_zh="该临时文件名可被预知，其他用户可能抢先创建。",
        fix_en="Use `tempfile.NamedTemporaryFile` or `tempfile.mkstemp`, which make the file as they choose the name.",
        fix_zh="使用 `tempfile.NamedTemporaryFile` 或 `tempfile.mkstemp`，它们在选名的同时创建文件。",
        purpose="Between choosing a name and opening it, a link to another file can be planted.",
        bad="""\
import tempfile

def export(rows):
    path = tempfile.mktemp(suffix=".csv")
    with open(path, "w") as file:
        file.writelines(rows)
    return path
""",
        good="""\
import tempfile

def export(rows):
    with tempfile.NamedTemporaryFile("w", suffix=".csv", delete=False) as file:
        file.writelines(rows)
    return file.name
""",
    ),
    Rule(
        id="world-writable-file",
        cwe="CWE-732",
        name="Incorrect Permission Assignment for Critical Resource",
        severity=Severity.MEDIUM,
        title_en="File that everybody may change",
        title_zh="任何人可写的文件",
        message_en="These permissions let every user of the machine change the file.",
        message_zh="该权限允许本机所有用户修改此文件。",
        fix_en="Give rights to the owner only: `0o600` for files, `0o700` for folders and programs.",
        fix_zh="只给属主权限：文件用 `0o600`，目录和程序用 `0o700`。",
        purpose="What everybody may change, an attacker with any account may change.",
        bad="""\
import os

def publish(path):
    os.chmod(path, 0o777)
""",
        good="""\
import os

def publish(path):
    os.chmod(path, 0o750)
""",
    ),
)
