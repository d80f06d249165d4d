"""Rules for secrets and cryptography: hashes, ciphers, keys, randomness, tokens, comparisons."""

from __future__ import annotations

from casemate.agents.audit.rules.rule import Rule
from casemate.finding import Severity

RULES = (
    Rule(
        id="hard-coded-secret",
        cwe="CWE-798",
        name="Use of Hard-coded Credentials",
        severity=Severity.HIGH,
        title_en="Hard-coded secret",
        title_zh="硬编码的密钥或口令",
        message_en="A secret stands in the source, where everybody who can read the code can take it.",
        message_zh="源码中写有密钥或口令，任何能读代码的人都能得到它。",
        fix_en="Read it from the environment or a secret store, and change it: it is known.",
        fix_zh="从环境变量或密钥管理服务读取，并立即更换：它已经泄露。",
        purpose="Source is copied, built into images and kept in history for ever.",
        bad="""\
import psycopg2

def connect():
    return psycopg2.connect(host="db", user="shop", password="Tr0ub4dor&3x")
""",
        good="""\
import os
import psycopg2

def connect():
    return psycopg2.connect(host="db", user="shop", password=os.environ["DB_PASSWORD"])
""",
        sheet="Secrets_Management_Cheat_Sheet",
    ),
    Rule(
        id="weak-hash",
        cwe="CWE-328",
        name="Use of Weak Hash",
        severity=Severity.MEDIUM,
        title_en="Weak hash",
        title_zh="弱哈希算法",
        message_en="MD5 and SHA-1 are broken: two inputs with the same hash can be made.",
        message_zh="MD5 和 SHA-1 已被攻破，可以构造哈希相同的两个输入。",
        fix_en="Use SHA-256 for signatures and checks, a password hash (scrypt, argon2, bcrypt) for passwords; "
        "where no security depends on it, say `usedforsecurity=False`.",
        fix_zh="签名和校验用 SHA-256，口令用 scrypt、argon2 或 bcrypt；与安全无关时写明 `usedforsecurity=False`。",
        purpose="Collisions are cheap, and fast hashes of passwords are guessed by the billion.",
        bad="""\
import hashlib

def store_password(password):
    return hashlib.md5(password.encode()).hexdigest()
""",
        good="""\
import hashlib

def etag(body):
    return hashlib.md5(body, usedforsecurity=False).hexdigest()
""",
        sheet="Password_Storage_Cheat_Sheet",
    ),
    Rule(
        id="fast-password-hash",
        cwe="CWE-916",
        name="Use of Password Hash With Insufficient Computational Effort",
        severity=Severity.MEDIUM,
        title_en="Fast hash of a password",
        title_zh="口令哈希计算强度不足",
        message_en="This hash is made to be fast; stolen hashes of passwords are guessed by the billion a second.",
        message_zh="该哈希算法速度很快，泄露的口令哈希每秒可被猜测数十亿次。",
        fix_en="Use `hashlib.scrypt`, argon2 or bcrypt, or PBKDF2 with at least 600,000 rounds.",
        fix_zh="使用 `hashlib.scrypt`、argon2、bcrypt，或至少 600,000 轮的 PBKDF2。",
        purpose="A password hash must cost time and memory, or a thief needs neither.",
        bad="""\
import hashlib

def protect(password, salt):
    return hashlib.sha256(salt + password.encode()).hexdigest()
""",
        good="""\
import hashlib

def protect(password, salt):
    return hashlib.scrypt(password.encode(), salt=salt, n=2**15, r=8, p=1)
""",
        sheet="Password_Storage_Cheat_Sheet",
    ),
    Rule(
        id="weak-cipher",
        cwe="CWE-327",
        name="Use of a Broken or Risky Cryptographic Algorithm",
        severity=Severity.MEDIUM,
        title_en="Weak cipher",
        title_zh="弱加密算法或模式",
        message_en="This cipher, mode or protocol is broken.",
        message_zh="该加密算法、模式或协议已不安全。",
        fix_en="Use AES-GCM or ChaCha20-Poly1305, and TLS 1.2 or newer.",
        fix_zh="使用 AES-GCM 或 ChaCha20-Poly1305，以及 TLS 1.2 或更新版本。",
        purpose="Small blocks and keys are searched, ECB shows which blocks are equal.",
        bad="""\
from Crypto.Cipher import AES

def seal(key, data):
    return AES.new(key, AES.MODE_ECB).encrypt(data)
""",
        good="""\
from Crypto.Cipher import AES

def seal(key, data):
    return AES.new(key, AES.MODE_GCM).encrypt_and_digest(data)
""",
        sheet="Cryptographic_Storage_Cheat_Sheet",
    ),
    Rule(
        id="weak-key-size",
        cwe="CWE-326",
        name="Inadequate Encryption Strength",
        severity=Severity.MEDIUM,
        title_en="Key too short",
        title_zh="密钥长度不足",
        message_en="A key of this size can be computed from its public half.",
        message_zh="该长度的密钥可由公钥计算得出。",
        fix_en="Use at least 3072 bits for RSA and DSA, or a 256-bit curve.",
        fix_zh="RSA 和 DSA 至少 3072 位，或使用 256 位曲线。",
        purpose="1024-bit keys are within reach of organisations since 2015.",
        bad="""\
from cryptography.hazmat.primitives.asymmetric import rsa

def new_key():
    return rsa.generate_private_key(public_exponent=65537, key_size=1024)
""",
        good="""\
from cryptography.hazmat.primitives.asymmetric import rsa

def new_key():
    return rsa.generate_private_key(public_exponent=65537, key_size=3072)
""",
        sheet="Cryptographic_Storage_Cheat_Sheet",
    ),
    Rule(
        id="weak-randomness",
        cwe="CWE-338",
        name="Use of Cryptographically Weak Pseudo-Random Number Generator (PRNG)",
        severity=Severity.MEDIUM,
        title_en="Predictable random secret",
        title_zh="可预测的随机数",
        message_en="This generator can be predicted from what it gave before; this value must not be guessed.",
        message_zh="该随机数发生器的输出可由先前的值推出，而此处的值不应被猜到。",
        fix_en="Use the `secrets` module.",
        fix_zh="使用 `secrets` 模块。",
        purpose="The Mersenne Twister's state follows from 624 of its outputs.",
        bad="""\
import random

def reset_token():
    return "".join(random.choice("0123456789abcdef") for _ in range(32))
""",
        good="""\
import secrets

def reset_token():
    return secrets.token_hex(16)
""",
        sheet="Cryptographic_Storage_Cheat_Sheet",
    ),
    Rule(
        id="jwt-not-verified",
        cwe="CWE-347",
        name="Improper Verification of Cryptographic Signature",
        severity=Severity.HIGH,
        title_en="Token accepted without its signature",
        title_zh="未验证令牌签名",
        message_en="The token's signature is not checked, so everybody can write their own.",
        message_zh="令牌的签名未被验证，任何人都可以伪造令牌。",
        fix_en="Decode with the key and a fixed list of algorithms; never `none`.",
        fix_zh="用密钥和固定的算法列表解码，绝不允许 `none`。",
        purpose="A token is only worth its signature.",
        bad="""\
import jwt

def who(token):
    return jwt.decode(token, options={"verify_signature": False})["sub"]
""",
        good="""\
import jwt

def who(token, key):
    return jwt.decode(token, key, algorithms=["HS256"])["sub"]
""",
        sheet="JSON_Web_Token_for_Java_Cheat_Sheet",
    ),
    Rule(
        id="timing-comparison",
        cwe="CWE-208",
        name="Observable Timing Discrepancy",
        severity=Severity.LOW,
        title_en="Secret compared in variable time",
        title_zh="非恒定时间的比较",
        message_en="`==` stops at the first difference, so its time tells how much of a guess was right.",
        message_zh="`==` 在首个不同处停止，其耗时会泄露猜对了多少。",
        fix_en="Compare with `hmac.compare_digest`.",
        fix_zh="使用 `hmac.compare_digest` 比较。",
        purpose="A signature can be found byte by byte by measuring.",
        bad="""\
import hashlib
import hmac
from flask import Flask, abort, request

app = Flask(__name__)

@app.post("/hook")
def hook():
    expected = hmac.new(app.config["HOOK_KEY"], request.get_data(), hashlib.sha256).hexdigest()
    if expected != request.headers["X-Signature"]:
        abort(403)
    return {"ok": True}
""",
        good="""\
import hashlib
import hmac
from flask import Flask, abort, request

app = Flask(__name__)

@app.post("/hook")
def hook():
    expected = hmac.new(app.config["HOOK_KEY"], request.get_data(), hashlib.sha256).hexdigest()
    if not hmac.compare_digest(expected, request.headers["X-Signature"]):
        abort(403)
    return {"ok": True}
""",
    ),
)
