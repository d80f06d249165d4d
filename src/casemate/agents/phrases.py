"""What agents say themselves, in both languages. One value a language, so a missing translation is a type error."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from casemate.finding import Confidence, Severity

Language = Literal["en", "zh"]

TAGS: dict[Language, str] = {"en": "en", "zh": "zh-CN"}
"""BCP 47 tags of the languages."""

_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff]")


def language_of(text: str) -> Language:
    """`zh` where the text holds a Chinese character, else `en`."""
    return "zh" if _HAN.search(text) else "en"


@dataclass(frozen=True, slots=True)
class Phrases:
    """Every fixed sentence; braces are filled with `str.format`."""

    severity: dict[Severity, str]
    confidence: dict[Confidence, str]
    colon: str
    comma: str
    semicolon: str
    kind: str
    severity_title: str
    confidence_title: str
    fix: str
    clauses: str
    place: str
    evidence: str
    flow: str
    references: str
    technique: str
    explanation: str
    explained_by: str
    a_model: str
    no_model: str
    no_fix: str
    no_clauses: str
    rules_title: str
    rules_found_nothing: str
    not_analysed: str
    python_only: str
    no_graph: str
    no_code: str
    no_passages: str
    from_passages: str
    use: str
    named: str
    offered: str
    model_failed: str
    sources: str
    source: str
    identifier: str
    count: str
    answer_title: str
    findings: str
    title: str
    model: str


ENGLISH = Phrases(
    severity={
        Severity.CRITICAL: "critical",
        Severity.HIGH: "high",
        Severity.MEDIUM: "medium",
        Severity.LOW: "low",
        Severity.INFO: "info",
    },
    confidence={Confidence.HIGH: "high", Confidence.MEDIUM: "medium", Confidence.LOW: "low"},
    colon=": ",
    comma=", ",
    semicolon="; ",
    kind="Kind of weakness",
    severity_title="Severity",
    confidence_title="Confidence",
    fix="Corrected code",
    clauses="Clauses touched",
    place="Place",
    evidence="Evidence",
    flow="Flow",
    references="References",
    technique="ATT&CK technique",
    explanation="Explanation",
    explained_by="Explanation by {model}",
    a_model="the model",
    no_model="No model took part: everything here comes from the rules and the knowledge graph.",
    no_fix="No safe automatic fix.",
    no_clauses="None recorded for this kind.",
    rules_title="What the rules say",
    rules_found_nothing="The rules found nothing in this code. That is not proof that it is safe: "
    "they know a fixed set of weaknesses and see only these lines.",
    not_analysed="Not analysed: {reason}.",
    python_only="the rules know Python only, not {language}",
    no_graph="There is no knowledge graph to answer from; casemate kb build makes one.",
    no_code="The question speaks of code, but holds none that could be read; paste it, best between ``` marks.",
    no_passages="The knowledge graph holds nothing on this question.",
    from_passages="From the knowledge graph:",
    use="Use",
    named="named in the answer",
    offered="given to the model",
    model_failed="The model gave no answer ({reason}).",
    sources="Sources",
    source="Source",
    identifier="Identifier",
    count="Count",
    answer_title="Answer",
    findings="Findings",
    title="Title",
    model="Model",
)

CHINESE = Phrases(
    severity={
        Severity.CRITICAL: "严重",
        Severity.HIGH: "高危",
        Severity.MEDIUM: "中危",
        Severity.LOW: "低危",
        Severity.INFO: "提示",
    },
    confidence={Confidence.HIGH: "高", Confidence.MEDIUM: "中", Confidence.LOW: "低"},
    colon="：",
    comma="，",
    semicolon="；",
    kind="弱点类型",
    severity_title="严重程度",
    confidence_title="置信度",
    fix="修复代码",
    clauses="涉及条款",
    place="位置",
    evidence="证据",
    flow="数据流",
    references="参考资料",
    technique="ATT&CK 技术",
    explanation="解释",
    explained_by="解释（由 {model} 生成）",
    a_model="模型",
    no_model="没有使用模型：以下内容全部来自规则和知识图谱。",
    no_fix="没有安全的自动修复方案。",
    no_clauses="该类型没有登记条款。",
    rules_title="规则结论",
    rules_found_nothing="规则在这段代码中没有发现问题。这并不证明代码安全：规则只认识固定的弱点类型，也只看到这几行代码。",
    not_analysed="未分析：{reason}。",
    python_only="规则只认识 Python，不认识 {language}",
    no_graph="没有可用的知识图谱；请运行 casemate kb build 构建。",
    no_code="问题提到了代码，但其中没有可以读取的代码；请粘贴代码，最好放在 ``` 之间。",
    no_passages="知识图谱中没有与该问题相关的内容。",
    from_passages="来自知识图谱：",
    use="用途",
    named="回答中引用",
    offered="提供给模型",
    model_failed="模型没有给出回答（{reason}）。",
    sources="来源",
    source="出处",
    identifier="编号",
    count="数量",
    answer_title="回答",
    findings="发现",
    title="标题",
    model="模型",
)

PHRASES: dict[Language, Phrases] = {"en": ENGLISH, "zh": CHINESE}
