"""Checks of texts that try to steer the reader: orders to reviewers and models, characters that turn a line round.

Told by the second person: somebody who reads code for a living (a reviewer, a scanner, an assistant) is told to leave
something out or to call something safe. A text that only talks of such orders is data: it is quoted in a list of
examples, or it says of whom it speaks in the third person.
"""

from __future__ import annotations

import ast
import re

from casemate.agents.audit.facts.record import Record
from casemate.agents.audit.facts.syntax import nodes
from casemate.finding import Confidence

_READER = (
    r"(?:ai|llms?|gpt|claude|copilot|chatgpt|language models?"
    r"|(?:(?:ai|llm|automated|code|security|static)[\s-]+){0,2}"
    r"(?:review(?:er|ing)?|audit(?:or|ing)?|scann(?:er|ing)|analy[sz](?:er|ers|ing)|analysis)"
    r"(?:s|\s+tools?|\s+models?|\s+agents?|\s+bots?|\s+systems?)?"
    r"|assistants?|agents?|linters?|automated tools?)"
)
_WHAT = (
    r"(?:findings?|issues?|vulnerabilit(?:y|ies)|problems?|warnings?|weakness(?:es)?"
    r"|this (?:file|function|code|module|line|block)"
    r"|the (?:following|above|below)\s*(?:code|lines?|function)?|anything|nothing)"
)
_OVERRIDE = re.compile(
    r"\b(?:ignore|disregard|forget|override)\s+(?:(?:all|any|every|your|the|my|these|of)\s+){0,3}"
    r"(?:previous|prior|earlier|above|preceding|system|original|other|existing)\s+"
    r"(?:\w+\s+)?(?:instructions?|prompts?|rules?|guidelines?|directions?|orders?|commands?)",
    re.IGNORECASE,
)
_VERDICT = re.compile(
    rf"\b(?:report|return|output|say|answer|respond(?:\s+with)?|flag|list|raise)\s+(?:that\s+)?(?:no|zero|nothing|only)\b(?:\s+{_WHAT})?"
    r"|\b(?:do\s+not|don't|never|must\s+not|should\s+not|shall\s+not)\s+(?:report|flag|mention|list|raise|analy[sz]e|scan|review|audit|warn)\b"
    r"|\b(?:mark|classify|treat|consider|rate|label|regard|approve|declare|score)\s+(?:this|it|the|all|every|everything|these)\b[^.\n]{0,50}"
    r"\b(?:safe|secure|clean|benign|trusted|false\s+positives?|approved|not\s+vulnerable|compliant|low|harmless)\b"
    rf"|\bskip\s+{_WHAT}|\b(?:suppress|hide|omit|exclude|ignore)\s+(?:all\s+|any\s+|every\s+|the\s+)*{_WHAT}"
    r"|\b(?:no\s+(?:vulnerabilities|issues|findings)\s+(?:exist|here|found|in\s+this))[^.\n]{0,40}\b(?:report|say|answer|output)",
    re.IGNORECASE,
)
_ADDRESSED = re.compile(
    rf"(?:^|[\n.!?:\[(<#*\"']\s*|\b(?:note|attention|important|instructions?|message|notice|hint|dear|hey|to|for)[,:]?\s*(?:to|for|:)?\s+(?:the\s+|any\s+|all\s+)*)"
    rf"{_READER}(?:\s+(?:and|or|/)\s+{_READER})*\s*(?:[:,;!-]|\b(?:must|should|shall|please|are\s+(?:to|instructed)|is\s+(?:to|instructed)|you)\b)"
    rf"|\b(?:if\s+you(?:'re|\s+are)|you\s+are|as)\s+(?:an?\s+|the\s+)?{_READER}\b",
    re.IGNORECASE,
)
_CHINESE_OVERRIDE = re.compile(
    r"(?:忽略|无视|忘记|不要理会|不要遵守)(?:掉)?(?:你|所有|一切|之前|以上|先前|此前|上面|前面|的|全部|任何){1,6}(?:指令|提示|规则|说明|要求|命令)"
)
_CHINESE_READER = re.compile(
    r"(?:AI|人工智能|大模型|语言模型|审计|审查|审核|扫描|评审|检测)(?:员|者|器|工具|模型|助手|程序|系统|代理)?",
    re.IGNORECASE,
)
_CHINESE_VERDICT = re.compile(
    r"(?:不要|请勿|无需|禁止|切勿|不得|不必|别)(?:再)?(?:报告|上报|标记|提示|检查|分析|审查|扫描|告警|提及)"
    r"|(?:标记|视|判定|认定|评)(?:为|作|成|定为)?[^。\n]{0,8}(?:安全|无风险|误报|没有问题|可信|无漏洞)"
    r"|(?:报告|回答|输出|返回|回复)[^。\n]{0,6}(?:没有|无|未发现|不存在)[^。\n]{0,6}(?:问题|漏洞|风险|缺陷)"
    r"|跳过(?:本|此|这个|该)(?:文件|函数|代码|段)"
)
_QUICK = re.compile(
    r"ignore|disregard|forget|override|do not|don't|never|must|report|mark|treat|consider|classify|skip|suppress"
    r"|approve"
    r"|忽略|无视|不要|请勿|无需|标记|视为|判定|跳过|报告|忘记|切勿",
    re.IGNORECASE,
)
_COMMENT = re.compile(r"(?:^|\s)#+\s?(.*)$")
_TURNS = re.compile("[\u202a-\u202e\u2066-\u2069]")
_MAX_TEXT = 4000
_SHORT = 8


def check(record: Record) -> None:
    """Every comment and text of a file."""
    for number, line in enumerate(record.source.lines, 1):
        if not line.isascii() and _TURNS.search(line):
            record.weak("misleading-text-direction", _line(line, number))
    comments = _comments(record.source.lines)
    for number, text in comments:
        if is_order(text):
            record.weak(
                "planted-instruction", _line(record.source.lines[number - 1], number), confidence=Confidence.MEDIUM
            )
    for node in _texts(record.source.tree):
        if is_order(str(node.value)[:_MAX_TEXT]):
            record.weak("planted-instruction", node, confidence=Confidence.MEDIUM)


def is_order(text: str) -> bool:
    """Whether a text tells a reviewer or a model what to make of the code that it reads."""
    if not _QUICK.search(text):
        return False
    if _CHINESE_OVERRIDE.search(text) or (_CHINESE_READER.search(text) and _CHINESE_VERDICT.search(text)):
        return bool(_CHINESE_READER.search(text) or _CHINESE_VERDICT.search(text))
    override, verdict = _OVERRIDE.search(text), _VERDICT.search(text)
    return bool(verdict and (override or _ADDRESSED.search(text)))


def _comments(lines: tuple[str, ...]) -> list[tuple[int, str]]:
    """Runs of comment lines as one text each, by the number of their first line."""
    found: list[tuple[int, str]] = []
    before = -1
    for number, line in enumerate(lines, 1):
        if "#" not in line:
            continue
        match = _COMMENT.search(line)
        if match is None:
            continue
        alone = line.lstrip().startswith("#")
        if alone and before == number - 1 and found:
            found[-1] = (found[-1][0], f"{found[-1][1]} {match[1]}")
        else:
            found.append((number, match[1]))
        before = number if alone else -1
    return found


def _texts(tree: ast.Module) -> list[ast.Constant]:
    """Texts that stand alone or are given to a name; those in a list, a set or a call are examples of something."""
    holders = (n for n in nodes(tree) if isinstance(n, ast.Expr | ast.Assign | ast.AnnAssign | ast.Return))
    values = (n.value for n in holders if isinstance(n.value, ast.Constant))
    return [value for value in values if isinstance(value.value, str) and len(value.value) > _SHORT]


def _line(text: str, number: int) -> ast.AST:
    """A place for a whole line."""
    start = len(text) - len(text.lstrip())
    return ast.Constant(
        value="",
        lineno=number,
        end_lineno=number,
        col_offset=len(text[:start].encode()),
        end_col_offset=len(text.encode()),
    )
