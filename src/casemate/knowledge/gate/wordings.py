"""Forms of words by which English and Chinese texts relate two identifiers. Patterns only."""

from __future__ import annotations

import re

_ADVERB = r"(?:\w+ly\s+)?"


def _any(*forms: str) -> str:
    return "|".join(forms)


_FORMS = {
    "maps": _any(
        rf"(?:is|are|was)?\s*{_ADVERB}(?:maps?|mapped|corresponds?)\s+{_ADVERB}(?:to|onto)",
        r"→|->|=>|⇒|⟶",
        r"(?:被|已)?(?:官方)?(?:映射|对应|关联)(?:到了?|至|于|为|的是)?",
    ),
    "leads": _any(
        rf"{_ADVERB}(?:leads?\s+to|enables?|results?\s+in|opens\s+the\s+way\s+to)",
        r"(?:直接|间接)?(?:导致|引发|使能)了?",
    ),
    "exploited": (
        rf"(?:is|are|can\s+be|may\s+be|was)\s+{_ADVERB}(?:exploited|attacked|abused|targeted)\s+(?:through|via|by|using|with)"
    ),
    "exploits": r"exploits?|abuses?|takes\s+advantage\s+of|利用了?",
    "mitigates": r"mitigates?|counters?|(?:可|能|可以|能够)?(?:缓解|抵御)了?",
    "mitigated": _any(
        rf"(?:is|are|can\s+be|may\s+be)\s+{_ADVERB}(?:mitigated|countered)\s+(?:by|with|through|using)",
        r"的缓解措施(?:是|为|包括)",
    ),
    "belongs": _any(
        r"belongs?\s+to|falls?\s+(?:under|into|within)",
        rf"(?:is|are)\s+{_ADVERB}(?:part\s+of|under|in|a\s+member\s+of|covered\s+by)",
        rf"(?:is|are)\s+{_ADVERB}(?:classified|categori[sz]ed|listed|placed|filed)\s+(?:as|under|in|into)",
        rf"(?:is|are)\s+{_ADVERB}an?\s+\w*\s*(?:technique|weakness)\s+(?:of|in|under)",
        r"under|归?属于|归于|归入|归类为|归类到|隶属于|被归为",
    ),
    "includes": r"includes?|contains?|covers?|comprises?|包含|包括|涵盖",
    "child": (
        r"(?:is|are)\s+(?:an?|the)\s+(?:direct\s+)?"
        r"(?:child|sub-?type|sub-?technique|sub-?class|descendant|speciali[sz]ation)\s+of"
    ),
    "parent": r"(?:is|are)\s+(?:an?|the)\s+(?:direct\s+)?(?:parent|super-?class)\s+of",
    "has_parent": (
        r"(?:['’]s|的)\s*(?:direct\s+|直接)?(?:parent|父(?:类|级|项|节点|弱点|技术)|上级(?:弱点|技术)?)\s*(?:is|是|为)"
    ),
    "detects": r"detects?|(?:可|能|可以|用于)?(?:检测|发现)到?",
    "detected": rf"(?:is|are|can\s+be)\s+{_ADVERB}detected\s+(?:by|with)",
    "touches": _any(
        r"touches?|violates?|breaches?|contravenes?|(?:is\s+)?(?:in|a)?\s*(?:violation|breach)\s+of",
        r"(?:complies|comply)\s+with|relates?\s+to|违反了?|不?符合|涉及|触及",
    ),
}
"""Each form's name and its words; the name is what `relations` knows it by."""

NAMED = r"(?:['’]s)?\s*(?:[(（\[][^()（）\[\]]{1,120}(?:[(（][^()（）]{1,60}[)）])?[)）\]])?"
"""The name in brackets that an identifier may be followed by."""
_FILLER = (
    r"(?:\s|[,，*_`'\"“”]|also|directly|officially|formally|usually|typically|which|that|it|can|may|could|will|this|the"
    r"|weakness|vulnerability|technique|pattern|mitigation|tactic|rule|control|flaw"
    r"|漏洞|弱点|技术|战术|规则|缺陷|攻击|官方|直接|通常|可以|可能|能够|可|会|能|也|被|它|则|均|都)*"
)
_LEAD_IN = (
    r"(?:\s|[:：*_`'\"“”《]|the|an?|both|MITRE(?:['’]s)?|ATT&CK|OWASP|CAPEC|CWE|NIST|GDPR|HIPAA|MLPS|Sigma"
    r"|Top[ -]?(?:10|Ten)|20\d\d|SP|800-53|45\s*CFR|GB/?T\s*22239(?:-2019)?|等保(?:2\.0)?|§"
    r"|tactics?|techniques?|sub-techniques?|categor(?:y|ies)|class|weakness(?:es)?|attack|patterns?|risks?|rules?"
    r"|controls?|clauses?|articles?|requirements?|mitigations?|entry|its"
    r"|战术|技术|类别|分类|弱点|规则|条款|风险|第|了|到|的|攻击模式|控制项?)*"
)
_OPENING = r"[(（\[]?\s*"
_TAIL = rf"{_LEAD_IN}(?:[^()（）,;.，。；：:\n]{{2,90}}?)??{_OPENING}"
_LAW = (
    r"(?:(?:the|OWASP|Top\s*10|NIST|SP|800-53|HIPAA|45\s*CFR|MLPS|2\.0|GB/?T\s*22239-2019|等保|GDPR|§|[\s:：《》第])*)"
)
_JOINTS = r"(?:,\s*and|,\s*or|[,，、;；/&+]|and|or|和|与|及|以及|或)"

VERB = re.compile(
    rf"{NAMED}{_FILLER}(?:" + _any(*(f"(?P<{name}>{form})" for name, form in _FORMS.items())) + rf")(?P<tail>{_TAIL})\Z"
)
"""What stands between two identifiers if one form of words relates them."""
FORMS = tuple(_FORMS)
PLAIN_TAIL = re.compile(rf"{_LEAD_IN}{_OPENING}\Z")
NAME_TAIL = re.compile(r"[^()（）]*[(（\[]\s*\Z")
OPENS_ASIDE = re.compile(r"\s*[(（\[][^()（）\n]{0,60}\Z")
JOINT = re.compile(rf"{NAMED}[\s*_`]*{_JOINTS}[\s*_`]*{_LAW}(?:[^()（）,;.，。；\n]{{2,80}}[(（])?\s*\Z")
"""What stands between two members of one list."""
BRACKET = re.compile(r"\s*[(（\[]\s*(?:OWASP\s*(?:Top\s*10\s*)?|MITRE\s*|ATT&CK\s*|tactic\s*|战术[:：]?\s*)*\Z")
TO = re.compile(rf"{NAMED}\s*(?:to|onto|与|和|到)\s*{_TAIL}\Z")
MAPS_BEFORE = re.compile(
    r"\b(?:maps?|mapped|mapping(?:\s+of|\s+from)?|links?|linked)\s+(?:the\s+|weakness\s+|CWE\s+)*\Z", re.IGNORECASE
)
MAPPED_BEHIND = re.compile(rf"{NAMED}\s*(?:之间)?的(?:官方)?(?:映射|对应)")
FRAMES = (
    ("exploited", rf"{_FILLER}(?:通过|经由|由|被)\s*{_TAIL}", r"(?:来|所|进行|被)?利用"),
    ("child", rf"\s*(?:是|为)\s*{_TAIL}", r"的(?:直接)?(?:子类|子级|子项|子弱点|子节点|子技术|下级)"),
    ("parent", rf"\s*(?:是|为)\s*{_TAIL}", r"的(?:直接)?(?:父类|父级|父项|父弱点|父节点|父技术|上级)"),
    ("mitigated", rf"\s*可?(?:由|被|通过|用)\s*{_TAIL}", r"来?缓解"),
)
"""Chinese forms that close behind the second identifier: the form, what opens it, and what closes it."""
FRAMED = tuple(
    (form, re.compile(rf"{NAMED}{opening}\Z"), re.compile(rf"{NAMED}\s*{closing}")) for form, opening, closing in FRAMES
)
DENIED = re.compile(
    r"\b(?:not|never|no|cannot|neither|without|wrong(?:ly)?|incorrect(?:ly)?|mistaken(?:ly)?|whether|if|unlike|instead)\b"
    r"|n['’]t\b|不(?!符合)|并非|没有|无法|误|是否|如果|若",
    re.IGNORECASE,
)
ASKED = re.compile(r"\b(?:does|do|is|are|can|should|why|how|which)\s+(?:\w+\s+){0,3}\Z", re.IGNORECASE)
STOP = re.compile(r"(?<!\b[Aa]rt)(?<!\b[Nn]o)(?<!\b[Rr]ev)[.!?](?=\s|\Z)|[。！？；;\n]")
AUTHORITY = re.compile(
    r"\bofficial(?:ly)?\b|according\s+to\s+MITRE|官方"
    r"|\bMITRE(?:\s+\w+){0,2}?\s+(?:maps?|mapped|links?|lists?|says?|states?|associates?)\b",
    re.IGNORECASE,
)
LEGAL = re.compile(r"violat|breach|contraven|compl(?:y|ies)\s+with|违反|符合", re.IGNORECASE)
