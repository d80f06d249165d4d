"""Machines, rooms and parts that are spelt as ATT&CK and D3FEND ids are: `a T1000 controller`, `M1100螺栓`. Pure."""

from __future__ import annotations

import re

from casemate.knowledge.gate.relations import family
from casemate.knowledge.gate.sightings import Sighting

_SUBJECT = re.compile(
    r"ATT&CK|MITRE|D3FEND|techni(?!cian)|tactic|mitigat|countermeasure|\bTTPs?\b|matrix|advers|attack|malware|exploit|intrus|credential|phish"
    r"|payload|lateral|persist|ransom|beacon|\bC2\b|\bEDR\b|SIEM|\bCWE|CAPEC|\bCVE|sigma|detect|threat|defen[cs]e"
    r"|技术|战术|缓解|矩阵|攻击|恶意|入侵|样本|勒索|红队|蓝队|横向|凭据|持久|钓鱼|威胁|防护|防御|告警|检测|对抗",
    re.IGNORECASE,
)
"""What a sentence speaks of that cites them."""
_THING_BEFORE = re.compile(
    r"\b(?:rooms?|codes?|models?|types?|parts?|units?|serial|sku|build|version|firmware|invoices?|orders?|pallets?|gates?|flights?|hall|desk|printers?"
    r"|device|machines?|pumps?|motors?|trains?|routers?|ports?|articles?|lots?|batch)(?:[\s_-]*(?:no\.?|number|id|name|code))?[\s:#\"]*\Z"
    r"|(?:型号|机型|房间|会议室|料号|订单|零件|设备|批次|编号为?|版本|固件|车次|航班|机床|电机)[\s:：为是\"]*\Z",
    re.IGNORECASE,
)
_COUNTED_BEFORE = re.compile(
    r"(?:\b(?:an?|the|two|three|four|five|six|this|that|our|each|every|another|one)|\d+\s*[x×]?|[一两二三四五六台个只])\s*\Z",
    re.IGNORECASE,
)
_NOUN_AFTER = re.compile(
    r"\s(?!(?:and|or|was|were|is|are|has|had|have|in|on|at|by|to|for|with|from|which|that|when|as|but|then|after|before|because|since|while"
    r"|if|so|not|does|did|can|will|may|should|would|under|of)\b)[a-z]{3,}"
)
_SUFFIX = re.compile(r"-?[A-Za-z0-9]*[A-Za-z]|-\d")
_HAN_AFTER = re.compile(
    r"\s?(?:号|型|系列|控制器|螺[栓钉母丝]|支架|电机|马达|机床|机组|机柜|机房|主机|设备|装置|房间?|会议室|插头|扎带|打印机|水?泵|阀|交换机|路由器|模块|板卡|接口板|零件|部件|"
    r"轴承|传感器|仪表|车床|列车|航班|货架|托盘|包装|订单|发票|工位|展位|车间|电缆|线缆|手机|相机|芯片)"
)


_CODE = re.compile(r"\s*(?:[=<>+*/;\[%-]|\+\+|--)(?![\w>])")
"""What follows a variable in a program."""
_CELL = re.compile(r"(?:\A|\|)\s*\Z")


def is_one(sighting: Sighting, *, is_real: bool) -> bool:
    """Whether a mention that turned out wrong names a thing, in words that speak of no attack or defence.

    What begins a text or a cell and has a noun behind it, `T1000 robot`, is one only if there is no such id.
    """
    if family(sighting.mention.id) not in ("T", "G", "M", "D") or "." in sighting.mention.id:
        return False
    before, after = sighting.before, sighting.after
    if _SUBJECT.search(sighting.context):
        return False
    begins = not is_real and _CELL.search(before)
    counted = (_COUNTED_BEFORE.search(before) or begins) and _NOUN_AFTER.match(after)
    thing = counted or _THING_BEFORE.search(before) or _SUFFIX.match(after) or _HAN_AFTER.match(after)
    return bool(thing or _CODE.match(after))
