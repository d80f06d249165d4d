"""Forms of words by which English and Chinese texts relate two identifiers. Patterns only."""

from __future__ import annotations

import re

_ADVERB = r"(?:(?:\w+ly|also|now|still|even|both)\s+){0,2}"
_BE = r"(?:(?:is|are|was|were|be|been|being|gets?|got|has|have|had|can|may|should|must|will)\s+){0,3}"
_PUT = (
    r"(?:listed|placed|filed|put|classified|classed|categori[sz]ed|grouped|sorted|counted|recorded|tracked|booked|ranked"
    r"|assigned|attributed|shown|found|tagged|label+ed|considered|treated|seen|reported|registered|described|allocated"
    r"|entered|logged|kept|covered|mapped|noted|marked|named|shelved|located|situated|understood|said\s+to\s+be)"
)
_STANDS = (
    r"(?:belongs?|falls?|sits?|goes|comes?|lives?|stands?|appears?|ranks?|counts?|lies|features?|resides?|lands?|figures?"
    r"|shows\s+up|serves?|remains?|works?)"
)
_PLACE = r"(?:as|under|underneath|beneath|below|in|into|within|inside|among|amongst|to|with|of|for)"
_PART = (
    r"(?:\s+(?:the|an?|one))?(?:\s+(?:part|members?|one|step|techniques?|weakness(?:es)?|entr(?:y|ies)"
    r"|item|case)\s+(?:of|in|under|within))"
)
_ZH_PUT = (
    r"(?:归类|归档|归纳|划分|分类|登记|统计|收录|收|归|列|划|放|排|记|算|写|标|分|计|挂|落|编|视|看|当|说|定|并|摆)"
)
_ZH_PASSIVE = r"(?:单独|一并|统一|正式|官方|明确|通常|一般|同样|仍|还|也|都|均|已|应|可|被|会|要|单|同){0,4}"


def _any(*forms: str) -> str:
    return "|".join(forms)


_AS = (
    rf"{_BE}{_ADVERB}(?:{_PUT}\s+)?(?:by\s+[\w&]+\s+)?(?:to\s+be\s+|as\s+|among\s+)?(?:an?|the|one\s+of\s+the|our)?\s*"
    r"(?:direct\s+|official\s+|known\s+)?"
)
"""`is listed by MITRE as an official …`, before a noun."""

BELONGS = _any(
    rf"{_ADVERB}{_STANDS}\s+{_ADVERB}{_PLACE}(?:{_PART})?",
    rf"{_BE}{_ADVERB}{_PUT}\s+{_ADVERB}(?:by\s+[\w&]+\s+)?{_PLACE}(?:{_PART})?",
    rf"(?:is|are|was|were)\s+{_ADVERB}(?:under|in|within|among|part\s+of|a\s+member\s+of|one\s+of)(?:{_PART})?",
    rf"(?:is|are|was|were)\s+{_ADVERB}(?:an?|the|one)\s+(?:\w+\s+)?(?:techniques?|weakness|step|member|entry|case)\s+(?:of|in|under|within|from)",
    r"under",
    rf"{_ZH_PASSIVE}(?:归?属于?|隶属于?|归于|归入|列入|算进|位于|处于|归)(?:了|在)?",
    rf"{_ZH_PASSIVE}{_ZH_PUT}(?:为|作|成|在|到|入|进|于|给|至|做)+了?",
)
"""What says that one thing is a member of another."""
_FORMS = {
    "maps": _any(
        rf"{_BE}{_ADVERB}(?:maps?|mapped|corresponds?|linked|links|tied|ties|points?|associated|assigned|connected|relates?|related)"
        rf"\s+{_ADVERB}(?:to|onto|with)",
        r"→|->|=>|⇒|⟶",
        r"(?:被|已)?(?:官方)?(?:映射|对应|关联|指向|链接)(?:到了?|至|于|为|的是|着)?",
    ),
    "leads": _any(
        rf"{_ADVERB}(?:leads?\s+(?:straight\s+)?(?:on\s+)?to|enables?|results?\s+in|opens\s+the\s+(?:way|door)\s+to|gives\s+rise\s+to|causes?|allows?)"
        r"|as\s+(?:leading\s+to|enabling|causing)",
        rf"{_ADVERB}(?:makes?\s+possible|paves\s+the\s+way\s+(?:for|to))",
        r"(?:直接|间接)?(?:导致|引发|使能|造成|带来|促成)了?",
    ),
    "exploited": _any(
        rf"(?:is|are|can\s+be|may\s+be|was)\s+{_ADVERB}(?:exploited|attacked|abused|targeted|exercised|reached)"
        r"\s+(?:through|via|by(?:\s+means\s+of)?|using|with)",
    ),
    "exploits": _any(
        r"exploits?|abuses?|attacks?|targets?|as\s+(?:exploiting|attacking|abusing|targeting)|takes\s+advantage\s+of",
        r"利用了?|攻击的是|针对(?:的是)?",
    ),
    "attack_on": (
        rf"{_AS}(?:\w+\s+)?(?:attacks?|attack\s+patterns?|patterns?|ways?\s+to\s+(?:attack|exploit))(?:\s+patterns?)?\s*"
        r"(?:\s(?:on|against|for|of)|\sthat\s+exploits?|(?<=attack)|(?<=exploit))"
    ),
    "carried": _any(
        rf"(?:as\s+)?(?:is|are|was|can\s+be|being)\s+{_ADVERB}(?:carried\s+out|implemented|realised|realized|performed|executed|done|achieved)"
        r"\s+(?:by\s+means\s+of|by\s+way\s+of|by|through|via|with|using|as)",
        r"(?:通过|借助|经由|靠)",
    ),
    "precedes": _any(
        rf"(?:can|may|could|will)?\s*{_ADVERB}precedes?",
        rf"comes?\s+{_ADVERB}before",
        r"(?:可|能|会|可以|能够)?先于",
    ),
    "mitigates": _any(
        r"mitigates?|counters?|prevents?|stops?|blocks?|addresses|as\s+(?:mitigating|countering|preventing|stopping|blocking)",
        rf"(?:{_AS}|serves\s+as\s+an?|acts\s+as\s+an?|counts\s+as\s+an?)\s*(?:\w+\s+)?(?:mitigations?|countermeasures?|counter|defen[cs]es?|remed(?:y|ies))"
        r"\s+(?:of|for|against|to)",
        r"(?:可|能|可以|能够)?(?:用于|用来)?(?:缓解|抵御|对抗|反制|抵消|阻止|防御|抵抗|应对|防范|遏制)了?",
    ),
    "mitigated": _any(
        rf"(?:is|are|can\s+be|may\s+be)\s+{_ADVERB}(?:mitigated|countered|prevented|stopped)\s+(?:by|with|through|using)",
        r"的(?:官方)?(?:缓解|防护)?措施(?:是|为|包括|有)",
    ),
    "includes": rf"{_ADVERB}(?:includes?|contains?|covers?|comprises?|lists?|holds?)"
    r"|包含了?|包括了?|涵盖了?|收录了?|下有|下含|列有",
    "child": (
        r"(?:sits|stands|hangs|lives|ranks)\s+(?:directly\s+|right\s+)?(?:below|under|beneath)|"
        rf"{_AS}(?:child(?:ren)?|sub-?types?|sub-?techniques?|sub-?class(?:es)?|sub-?weakness(?:es)?|sub-?categor(?:y|ies)|descendants?|speciali[sz]ations?)"
        r"(?:\s+weakness|\s+technique|\s+entry|\s+node)?\s+(?:of|under|below)"
    ),
    "parent": rf"{_AS}(?:parent|super-?class|ancestor)(?:\s+weakness|\s+technique|\s+entry|\s+node)?\s+of",
    "has_parent": _any(
        r"(?:['’]s|的)\s*(?:direct\s+|直接)?(?:parent|父(?:类|级|项|节点|弱点|技术)|上级(?:弱点|技术)?)\s*(?:is|是|为)",
        r"has\s+(?:as\s+)?(?:its\s+)?(?:direct\s+)?parent",
        r"descends?\s+from|inherits?\s+from",
    ),
    "detects": r"detects?|(?:可|能|可以|用于)?(?:检测|发现)到?",
    "detected": rf"(?:is|are|can\s+be)\s+{_ADVERB}detected\s+(?:by|with)",
    "touches": _any(
        r"touches(?:\s+on)?|violates?|breaches?|infringes?|contravenes?|(?:is\s+)?(?:in|a)?\s*(?:clear\s+|direct\s+)?(?:violation|breach)\s+of",
        r"(?:complies|comply|compliant|conforms?)\s+with|(?:does|do)\s+not\s+(?:comply|conform)\s+with|fails\s+to\s+(?:comply\s+with|meet)"
        r"|is\s+(?:not\s+)?compliant\s+with|relates?\s+to|违反了?|违背了?|触犯了?|不?符合|不?满足|涉及|触及",
    ),
    "belongs": BELONGS,
}
"""Each form's name and its words; the name is what `relations` knows it by. Of two that fit, the earlier counts."""

_IN_BRACKETS = r"[(（\[][^()（）\[\]]{1,120}(?:[(（][^()（）]{1,60}[)）])?[)）\]]"
NAMED = rf"(?:['’]s)?\s*(?:{_IN_BRACKETS}|,\s[^,.;，。；\n]{{2,60}},(?=\s))?"
"""The name, in brackets or between commas, that an identifier may be followed by."""
BRACKETS = re.compile(_IN_BRACKETS)
_FILLER = (
    r"(?:\s|[,，*_`'\"“”]|also|directly|officially|formally|usually|typically|always|which|that|it|can|may|could|will|would|this|the"
    r"|weakness|vulnerability|technique|pattern|mitigation|tactic|rule|control|flaw"
    r"|in\s+(?:the|its|ATT&CK['’]s)\s+(?:\w+\s+)?(?:matrix|catalogue|list|edition)"
    r"|在[^，。,;；\n]{1,12}?(?:里|中|上|内|版)|按[^，。,;；\n]{1,10}?(?:分类|口径|版)"
    r"|漏洞|弱点|技术|战术|规则|缺陷|攻击|官方|直接|通常|可|以|会|能|够|也|被|它|则|均|都|就|这一[步项])*"
)
_LEAD_IN = (
    r"(?:\s|[:：*_`'\"“”《]|the|an?|both|MITRE(?:['’]s)?|ATT&CK|OWASP|CAPEC|CWE|NIST|GDPR|HIPAA|MLPS|Sigma|D3FEND"
    r"|Top[ -]?(?:10|Ten)|20\d\d|SP|800-53|45\s*CFR|GB/?T\s*22239(?:-2019)?|等保(?:2\.0)?|§"
    r"|tactics?|techniques?|sub-techniques?|categor(?:y|ies)|class|weakness(?:es)?|attack|patterns?|risks?|rules?"
    r"|controls?|clauses?|articles?|requirements?|mitigations?|entry|its|direct|parent|number|heading|column"
    r"|战术|技术|类别|分类|弱点|规则|条款|风险|第|了|到|的|攻击模式|控制项?|编号|版)*"
)
_OPENING = r"[(（\[]?\s*"
_TAIL = rf"{_LEAD_IN}(?:[^()（）,;.，。；：:\n]{{2,90}}?)??{_OPENING}"
_PLAIN_TAIL = rf"{_LEAD_IN}{_OPENING}"
_LAW = (
    r"(?:(?:the|OWASP|Top\s*10|NIST|SP|800-53|HIPAA|45\s*CFR|MLPS|2\.0|GB/?T\s*22239-2019|等保|GDPR|§|[\s:：《》第])*)"
)
_JOINTS = r"(?:,\s*and|,\s*or|[,，、;；/&+]|and|or|和|与|及|以及|或)"

VERB = re.compile(
    rf"{NAMED}{_FILLER}(?:"
    + _any(*(f"(?P<{name}>{form})" for name, form in _FORMS.items()))
    + rf")(?:{_PLAIN_TAIL}|{_LEAD_IN}[^()（）,;.，。；：:\n]{{2,90}}[(（\[]\s*)\Z"
)
"""What stands between two identifiers if one form of words relates them."""
FORMS = tuple(_FORMS)
INSIDE = re.compile(rf"{NAMED}\s*(?:in|into|within|of|under)\s{_PLAIN_TAIL}\Z")
IS = re.compile(rf"{NAMED}\s*(?:is|was|是|为)\s*{_PLAIN_TAIL}\Z")
PARENT_BEFORE = re.compile(r"\bparent(?:\s+(?:weakness|technique|entry|node))?\s+of\s+(?:the\s+)?\Z", re.IGNORECASE)
OPENS_ASIDE = re.compile(r"\s*[(（\[][^()（）\n]{0,60}\Z")
JOINT = re.compile(rf"{NAMED}[\s*_`]*{_JOINTS}[\s*_`]*{_LAW}(?:[^()（）,;.，。；\n]{{2,80}}[(（])?\s*\Z")
"""What stands between two members of one list."""
BRACKET = re.compile(r"\s*[(（\[]\s*(?:OWASP\s*(?:Top\s*10\s*)?|MITRE\s*|ATT&CK\s*|tactic\s*|战术[:：]?\s*)*\Z")
TO = re.compile(rf"{NAMED}\s*(?:to|onto|与|和|到)\s*{_TAIL}\Z")
MAPS_BEFORE = re.compile(
    r"\b(?:maps?|mapped|mapping(?:\s+of|\s+from)?|links?|linked|ties|tied)\s+(?:the\s+|weakness\s+|CWE\s+)*\Z",
    re.IGNORECASE,
)
MAPPED_BEHIND = re.compile(rf"{NAMED}\s*(?:之间)?的?(?:官方)?(?:映射|对应|关联)")
_ZH_IS = (
    r"(?:是|为|系|属于|属|作为|当成|算作?|成了|说成(?:是)?|当作|视为|视作|看作|看成"
    r"|列[为作入进]|写成|记为|记作|标为|定为|归为|归作|并作)"
)
FRAMES = (
    ("exploited", rf"{_FILLER}(?:通过|经由|由|被)\s*{_TAIL}", r"(?:来|所|进行|被)?利用"),
    ("child", rf"(?:{_FILLER}{_ZH_IS}|\s*[(（,，])\s*{_TAIL}",
     r"的(?:一个|一种|直接)?(?:子类型?|子级|子项|子条目|子弱点|子节点|子技术|下级|下位|后代)"),
    ("parent", rf"{_FILLER}{_ZH_IS}\s*{_TAIL}", r"的(?:一个|直接)?(?:父类|父级|父项|父弱点|父节点|父技术|上级|上位)"),
    ("attack_on", rf"{_FILLER}{_ZH_IS}\s*(?:是)?(?:针对|利用|攻击)?\s*{_TAIL}", r"(?:的|之)(?:一种|官方)?攻击"),
    ("belongs", rf"{_FILLER}{_ZH_IS}\s*{_TAIL}",
     r"(?:类别|战术|类|榜单)?(?:中|里|下|之下)?的?(?:成员|一员|一项|一步|技术|手法|条目|内容|一部分)"),
    ("mitigated", rf"{_FILLER}可?(?:由|被|通过|用)\s*{_TAIL}", r"来?(?:缓解|对抗|抵御)"),
    ("mitigates", rf"{_FILLER}{_ZH_IS}\s*{_TAIL}", r"的(?:一项|官方)?(?:缓解|防护|防御|对抗)(?:措施|手段)?"),
    ("carried", rf"{_FILLER}(?:由|用|以)\s*{_TAIL}", r"(?:来)?(?:实施|实现|完成|执行)"),
    ("precedes", rf"{_FILLER}(?:发生)?在\s*{_TAIL}", r"之前"),
    ("has_parent", rf"{NAMED}\s*(?:has|lists|shows|gets|with)\s+{_TAIL}",
     r"\s+as\s+(?:its|the|a|an)\s+(?:direct\s+)?(?:parent|ancestor)"),
    ("maps", rf"{_FILLER}(?:与|和|跟|同)\s*{_TAIL}", r"(?:相|互相)?(?:对应|关联|映射)"),
)  # fmt: skip
"""Chinese forms that close behind the second identifier: the form, what opens it, and what closes it."""
FRAMED = tuple(
    (form, re.compile(rf"{NAMED}{opening}\Z"), re.compile(rf"{NAMED}\s*{closing}")) for form, opening, closing in FRAMES
)
DENIED_BEFORE = re.compile(
    r"\b(?:not|never|no|cannot|neither|nor|wrong(?:ly)?|incorrect(?:ly)?|mistaken(?:ly)?|whether|if|unlike|instead|nobody|nothing)\b"
    r"|n['’]t\b|并非|不是|不再|不能|不会|不应|不认为|不存在|没有(?:证据|迹象|理由|人)|无(?:证据|法)|(?<!失)误(?!用)|是否|如果|若(?!干)|假如",
    re.IGNORECASE,
)
"""What makes a clause no claim, before its first identifier."""
DENIED = re.compile(
    DENIED_BEFORE.pattern.replace(r"\b(?:not|", r"\b(?:not(?!\s+(?:comply|compliant|conform))|", 1)
    + r"|\b(?:rather\s+than|without)\b|不(?!符合|满足|足|当|严|安全)|没有|未|无关",
    re.IGNORECASE,
)
"""The same between the two."""
ASKED = re.compile(r"\b(?:does|do|is|are|can|should|why|how|which)\s+(?:\w+\s+){0,3}\Z", re.IGNORECASE)
STOP = re.compile(r"(?<!\b[Aa]rt)(?<!\b[Nn]o)(?<!\b[Rr]ev)(?<!\bi\.e)(?<!\be\.g)[.!?](?=\s|\Z)|[。！？；;\n]")
CLAUSE = re.compile(r"[,，;；:：—]")
_SPEAKERS = (
    r"(?:MITRE|CWE|CAPEC|ATT&CK|D3FEND|OWASP|NIST|ATTACK|(?:the|its|their|that)\s+(?:catalogue|catalog|matrix|standard|list|law))"
    r"(?!-\d)(?:['’]s)?"
)
AUTHORITY = re.compile(
    rf"\bofficial(?:ly)?\b|\bauthoritative\b|\baccording\s+to\s+{_SPEAKERS}|官方|权威|法定|法律(?:明确)?规定"
    rf"|\b{_SPEAKERS}(?:\s+(?!we|our|I\b)\w+){{0,3}}?\s+(?:maps?|mapped|links?|lists?|says?|states?|associates?|records?|documents?|declares?|names?"
    r"|specifies|confirms?|holds?|asserts?|defines?|ties|puts?|shows?)\b"
    r"|(?:按照?|依据?|根据|据)\s*(?:MITRE|CWE|CAPEC|ATT&CK|D3FEND|OWASP|NIST)(?!-\d)"
    r"|(?:MITRE|CWE|CAPEC|ATT&CK|D3FEND|OWASP|NIST)(?!-\d)\s*(?:目录|矩阵|数据|条目|清单|知识库|标准)?(?:里|中)?\s*(?:称|指出|规定|明确|列出|写明|记载|把|将|声明|认定|写着|收录)",
    re.IGNORECASE,
)
"""Words by which a text says that a catalogue or a law says so."""
NO_AUTHORITY = re.compile(
    r"(?:\b(?:not|no|non|never|nor|without|nothing|neither|nowhere)\b|n['’]t\b)[\s-]*(?:(?:an?|any|the|in|as|is|yet|part|of|be|taken|to)\s+){0,4}"
    r"(?:official(?:ly)?|authoritative)|unofficial(?:ly)?|(?:并非|不是|没有|并无|尚无|未见|未经|不属于?|不代表|非|无)\s*(?:任何|来自)?\s*(?:官方|权威)"
    r"|官方\s*(?:并|尚|也|都)?(?:未|没有|不|无)",
    re.IGNORECASE,
)
"""Words that deny any authority."""
HEDGED = re.compile(
    r"\b(?:may|might|could|possibly|perhaps|probably|presumably|arguably|curated|unofficial(?:ly)?|our\s+(?:own|reading|view|notes?|judge?ment"
    r"|mapping|opinion)|we\s+(?:think|believe|suspect|read)|as\s+far\s+as|seems?|suspected)\b"
    r"|可能|或许|也许|大概|疑似|推测|自行|我们(?:整理|认为|自己|的)|自己整理|内部整理|仅供参考|有待|需请|待法务",
    re.IGNORECASE,
)
"""Words by which a text says that it only judges for itself."""
LEGAL = re.compile(
    r"violat|breach|contraven|infring|compl(?:y|ies|iant)\s+with|conform|违反|违背|触犯|符合|满足", re.IGNORECASE
)
CONTAINED = re.compile(
    r"\b(?:under|within|inside|among|belongs?|falls?|sits?|listed|filed|placed|part\s+of|member\s+of|techniques?\s+of)\b"
    r"|归|列|划|属|隶|成员|之下|名下|位于|记在|放在|放进|算"
)
"""A word that says, in one plain clause, that what comes first is inside what comes second."""
PARTS = re.compile(
    r"[,;:.，。；：、()（）\[\]→\n]|\b(?:and|or|then|to|from|before|after|with|while|but|than)\b|和|与|及|或|随后|再|然后|从"
)
"""What breaks such a clause in two."""
