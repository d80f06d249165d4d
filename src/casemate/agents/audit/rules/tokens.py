"""Rules for tokens: predictable ones, short ones, eternal ones."""

from __future__ import annotations

from casemate.agents.audit.rules.rule import Rule
from casemate.finding import Severity

RULES = (
    Rule(
        id="predictable-identifier",
        cwe="CWE-340",
        name="Generation of Predictable Numbers or Identifiers",
        severity=Severity.MEDIUM,
        title_en="Secret made of the clock",
        title_zh="由时钟生成的秘密值",
        message_en="The clock and the network card are known or tried in a moment; a hash of them hides nothing.",
        message_zh="时钟和网卡地址可以得知或很快试出，对其取哈希并不能隐藏。",
        fix_en="Use `secrets.token_urlsafe(32)`.",
        fix_zh="使用 `secrets.token_urlsafe(32)`。",
        purpose="A link that resets a password must not be worked out from the minute it was asked for.",
        bad="""\
import uuid

def reset_token():
    return str(uuid.uuid1())
""",
        good="""\
import secrets

def reset_token():
    return secrets.token_urlsafe(32)
""",
        sheet="Forgot_Password_Cheat_Sheet",
    ),
    Rule(
        id="short-token",
        cwe="CWE-331",
        name="Insufficient Entropy",
        severity=Severity.MEDIUM,
        title_en="Token of a few bytes",
        title_zh="令牌过短",
        message_en="So few random bytes are guessed by trying all of them.",
        message_zh="随机字节太少，逐一尝试即可猜中。",
        fix_en="Take at least 16 bytes; 32 where nothing speaks against it.",
        fix_zh="至少使用 16 字节，没有特殊原因时使用 32 字节。",
        purpose="Good randomness does not help where there is too little of it.",
        bad="""\
import secrets

def session_token():
    return secrets.token_hex(3)
""",
        good="""\
import secrets

def session_token():
    return secrets.token_hex(32)
""",
        sheet="Session_Management_Cheat_Sheet",
    ),
    Rule(
        id="token-never-expires",
        cwe="CWE-613",
        name="Insufficient Session Expiration",
        severity=Severity.MEDIUM,
        title_en="Expired tokens are accepted",
        title_zh="接受过期令牌",
        message_en="The token's end is not looked at, so a stolen one works for ever.",
        message_zh="未检查令牌有效期，被盗的令牌永远有效。",
        fix_en="Leave `verify_exp` on, and put an end into every token.",
        fix_zh="保持 `verify_exp` 开启，并为每个令牌设置有效期。",
        purpose="A token is a key that cannot be taken back; its end is the only lock change.",
        bad="""\
import jwt

def who(token, key):
    return jwt.decode(token, key, algorithms=["HS256"], options={"verify_exp": False})["sub"]
""",
        good="""\
import jwt

def who(token, key):
    return jwt.decode(token, key, algorithms=["HS256"], options={"require": ["exp"]})["sub"]
""",
        sheet="Session_Management_Cheat_Sheet",
    ),
)
