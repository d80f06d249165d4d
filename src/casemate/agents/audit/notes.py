"""What the audit notes in English (steps of flows, reasons, remarks on the model), told in the reader's language.

The notes stay English in JSON, for programs; here is the table by which people read them in Chinese. A note that the
table lacks is shown as it is.
"""

from __future__ import annotations

import re

from casemate.agents.phrases import Language

_STEPS = (
    (r"untrusted input: route argument (.*)", "不可信输入：路由参数 {}"),
    (r"untrusted input: (.*)", "不可信输入：{}"),
    (r"untrusted message: (.*)", "不可信消息：{}"),
    (r"command line: (.*)", "命令行参数：{}"),
    (r"from outside the snippet: (.*)", "来自代码片段之外：{}"),
    (r"parameter (.*)", "参数 {}"),
    (r"client's (.*)", "客户端的 {}"),
    (r"call of (.*)", "调用 {}"),
    (r"further calls, not shown", "更多调用，未列出"),
    (r"sink", "危险操作"),
)
_REASONS = (
    (r"version control's own folder, not entered", "版本控制目录，未进入"),
    (r"tool cache, not entered", "工具缓存，未进入"),
    (r"installed packages, not entered", "已安装的软件包，未进入"),
    (r"not a regular file", "不是普通文件"),
    (r"not text", "不是文本"),
    (r"minified.*", "压缩过的代码"),
    (r"no rules for this language \((.*)\)", "没有该语言的规则（{}）"),
    (r"larger than (.*)", "大于 {}"),
    (r"link that leads nowhere", "链接没有目标"),
    (r"link within the audited folder, not followed", "指向被审计目录内部的链接，未跟随"),
    (r"link out of the audited folder, not followed", "指向被审计目录之外的链接，未跟随"),
    (r"not valid Python: (.*) \(line (\d+)\)", "不是有效的 Python（第 {1} 行）"),
    (r"cannot be read: (.*)", "无法读取：{}"),
    (r"cannot be decoded or parsed: (.*)", "无法解码或解析：{}"),
    (r"nested too deeply for the parser", "嵌套过深，解析器无法处理"),
    (r"flow search cut after (\d+) steps, findings may be missing", "数据流搜索在 {} 步后中止，可能有遗漏"),
    (r"ignored by (.*)", "被 {} 忽略"),
    (r"container", "容器文件"),
    (r"it changed while it was read", "读取时发生了变化"),
    (r"time limit of (.*) s", "超过 {} 秒的时间限制"),
    (r"memory limit of (.*)", "超过 {} 的内存限制"),
    (r"crashed with (.*)", "分析进程崩溃（{}）"),
    (r"archive, not opened \(`--archives` opens it\)", "压缩包，未打开（可用 `--archives` 打开）"),
    (r"archive not opened: it holds more than (.*) GiB", "压缩包未打开：内容超过 {} GiB"),
    (r"archive not opened: it unpacks to more than (.*) times its size", "压缩包未打开：解压后超过原大小的 {} 倍"),
    (r"archive not opened: it holds more than (.*) entries", "压缩包未打开：条目超过 {} 个"),
    (r"archive not opened: .*", "压缩包未打开"),
    (r"damaged archive: .*", "压缩包已损坏"),
    (r"archive without files", "压缩包中没有文件"),
    (r"name that leads out of the archive", "文件名指向压缩包之外"),
    (r"name too long", "文件名过长"),
    (r"second entry of this name", "同名的第二个条目"),
    (r"cannot be unpacked: (.*)", "无法解压：{}"),
    (r"link or device in an archive, not unpacked", "压缩包中的链接或设备，未解压"),
    (r"no encoding declared, read as (.*)", "未声明编码，按 {} 读取"),
    (r"no encoding declared and not UTF-8, read as (.*)", "未声明编码且不是 UTF-8，按 {} 读取"),
    (r"cells in other languages not analysed: (.*)", "其他语言的单元格未分析：{}"),
    (r"syntax not understood in (\d+) places, the rest was analysed", "{} 处语法无法理解，其余部分已分析"),
    (r"syntax not understood in (\d+) places, the rest was analysed", "有 {} 处语法无法识别，其余部分已分析"),
    (r"only lines changed since (.*)", "仅检查自 {} 以来改动的行"),
)
_MODEL = (
    (r"no model: rules only", "没有使用模型：仅规则"),
    (r"explains after the findings", "在列出发现之后进行解释"),
    (r"explained (\d+) of (\d+) findings", "已解释 {1} 个发现中的 {0} 个"),
    (r"(\d+) milder ones were not asked about \(--explain\)", "其余 {} 个较轻的未提问（--explain）"),
    (r"(\d+) failed, the first: (.*)", "{0} 个失败，第一个：{1}"),
)
_TABLE = tuple((re.compile(pattern, re.DOTALL), chinese) for pattern, chinese in (*_STEPS, *_REASONS, *_MODEL))


def told(note: str, language: Language) -> str:
    """A note in a language; several notes joined by semicolons are told one by one."""
    if language == "en":
        return note
    whole = _chinese(note)
    return whole if whole != note else "；".join(_chinese(part) for part in note.split("; "))


def is_told(note: str) -> bool:
    """Whether the table has the note."""
    return any(pattern.fullmatch(note) for pattern, _ in _TABLE)


def _chinese(note: str) -> str:
    for pattern, chinese in _TABLE:
        if match := pattern.fullmatch(note):
            return chinese.format(*match.groups())
    return note
