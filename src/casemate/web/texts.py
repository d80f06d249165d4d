"""The page's words in both languages, and the choice between them."""

from __future__ import annotations

from collections.abc import Mapping

LANGUAGES = ("en", "zh")

_ENGLISH = {
    "tagline": "A private security analyst. Nothing leaves this machine.",
    "tagline_foreign": "A security analyst. Questions go to",
    "switch": "中文",
    "graph": "Knowledge graph",
    "skip": "Skip to the question",
    "ready": "ready",
    "starting": "starting",
    "ask": "Ask",
    "question": "Your question",
    "placeholder": "Paste code, or ask about a weakness, a technique, a finding…",
    "hint": "Enter sends, Shift + Enter starts a new line.",
    "ground": "Use the knowledge graph and check every id that is cited",
    "send": "Ask",
    "stop": "Stop",
    "clear": "New conversation",
    "you": "You",
    "thinking": "Thinking",
    "working": "Working…",
    "citations": "Cited",
    "offered": "Also offered to the model",
    "checked": "checked",
    "unchecked": "does not check out",
    "none_cited": "The answer cites no identifier.",
    "stopped": "Stopped.",
    "cut": "The answer reached its length limit.",
    "broken": "The answer broke off.",
    "failed": "No answer",
    "example_1": 'Is cursor.execute("SELECT * FROM users WHERE id = " + user_id) a risk, and how is it fixed?',
    "example_2": "What is CWE-79, and how does it differ from CWE-80?",
    "audit": "Latest audit",
    "no_audit": "Nothing was audited yet. Run",
    "full_report": "Open the full report",
    "severity": "Severity",
    "weakness": "Weakness",
    "place": "Place",
    "confidence": "Confidence",
    "findings": "findings",
    "analysed": "files analysed",
    "skipped": "skipped",
    "unread": "could not be analysed",
    "clean": "No findings in the {analysed} files analysed.",
    "clean_one": "No findings in the one file analysed.",
    "left_out": "Skipped, and so not judged: {skipped}.",
    "nothing": "No file was analysed, so this audit says nothing about the code.",
    "partial": "This audit is incomplete: what could not be analysed may hide findings.",
    "suppressed": "suppressed in the source",
    "api": "The API speaks OpenAI's chat completions at",
    "noscript": "Asking needs JavaScript; the report below does not.",
    "critical": "critical",
    "high": "high",
    "medium": "medium",
    "low": "low",
    "info": "info",
}

_CHINESE = {
    "tagline": "私有的安全分析员。任何数据都不会离开这台机器。",
    "tagline_foreign": "安全分析员。问题会发送到",
    "switch": "English",
    "graph": "知识图谱",
    "skip": "跳到提问处",
    "ready": "就绪",
    "starting": "启动中",
    "ask": "提问",
    "question": "您的问题",
    "placeholder": "粘贴代码，或询问某个弱点、攻击技术、审计发现……",
    "hint": "回车发送，Shift + 回车换行。",
    "ground": "使用知识图谱，并核对回答中引用的每个编号",
    "send": "提问",
    "stop": "停止",
    "clear": "新对话",
    "you": "您",
    "thinking": "思考过程",
    "working": "正在回答……",
    "citations": "引用",
    "offered": "另外提供给模型的条目",
    "checked": "已核对",
    "unchecked": "核对未通过",
    "none_cited": "回答没有引用任何编号。",
    "stopped": "已停止。",
    "cut": "回答达到了长度上限。",
    "broken": "回答中断了。",
    "failed": "没有得到回答",
    "example_1": '这段代码有 SQL 注入风险吗，如何修复？cursor.execute("SELECT * FROM users WHERE id = " + user_id)',
    "example_2": "CWE-79 是什么？它与 CWE-80 有什么不同？",
    "audit": "最近一次审计",
    "no_audit": "还没有审计过任何代码。请运行",
    "full_report": "打开完整报告",
    "severity": "严重程度",
    "weakness": "弱点",
    "place": "位置",
    "confidence": "置信度",
    "findings": "个发现",
    "analysed": "个文件已分析",
    "skipped": "个已跳过",
    "unread": "个未能分析",
    "clean": "已分析的 {analysed} 个文件中没有发现。",
    "clean_one": "已分析的 1 个文件中没有发现。",
    "left_out": "另有 {skipped} 个文件被跳过，未作判断。",
    "nothing": "没有分析任何文件，因此本次审计无法说明代码是否安全。",
    "partial": "本次审计不完整：未能分析的部分可能藏有问题。",
    "suppressed": "已在源码中抑制",
    "api": "API 采用 OpenAI 的 chat completions 格式，地址为",
    "noscript": "提问需要 JavaScript；下面的报告不需要。",
    "critical": "严重",
    "high": "高",
    "medium": "中",
    "low": "低",
    "info": "提示",
}

TEXTS: Mapping[str, Mapping[str, str]] = {"en": _ENGLISH, "zh": _CHINESE}


def language(asked: str, accepted: str) -> str:
    """`en` or `zh`.

    Args:
        asked: what the address asks for; wins if it is one of ours.
        accepted: the browser's Accept-Language header; its first language of ours is taken, in the order of quality.
    """
    if asked in LANGUAGES:
        return asked
    wishes = [part.strip().partition(";") for part in accepted.lower().split(",")]
    ranked = sorted(wishes, key=lambda wish: _quality(wish[2]), reverse=True)
    return next((tag[:2] for tag, _, _ in ranked if tag[:2] in LANGUAGES), "en")


def _quality(parameter: str) -> float:
    try:
        return float(parameter.strip().removeprefix("q="))
    except ValueError:
        return 1.0
