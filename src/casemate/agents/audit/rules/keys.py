"""Rules for keys, salts, vectors and tokens: what must be secret, fresh, long enough, and not for ever."""

from __future__ import annotations

from casemate.agents.audit.rules.rule import Rule
from casemate.finding import Severity

RULES = (
    Rule(
        id="hard-coded-key",
        cwe="CWE-321",
        name="Use of Hard-coded Cryptographic Key",
        severity=Severity.HIGH,
        title_en="Hard-coded cryptographic key",
        title_zh="硬编码的加密密钥",
        message_en="The key stands in the source, so whoever reads the code can read and forge what it protects.",
        message_zh="密钥写在源码中，能读代码的人就能解密或伪造受其保护的数据。",
        fix_en="Load the key from a secret store or the environment, and replace it: it is known.",
        fix_zh="从密钥管理服务或环境变量加载密钥，并立即更换：它已经泄露。",
        purpose="A cipher hides nothing from those who hold its key.",
        bad="""\
from cryptography.fernet import Fernet

def seal(data):
    return Fernet(b"q3v8Vb0xM4n2LrT7yW1kZc5dFg6hJ9pQsEuXaRiOt_s=").encrypt(data)
""",
        good="""\
import os
from cryptography.fernet import Fernet

def seal(data):
    return Fernet(os.environ["SEAL_KEY"]).encrypt(data)
""",
        sheet="Key_Management_Cheat_Sheet",
    ),
    Rule(
        id="missing-salt",
        cwe="CWE-759",
        name="Use of a One-Way Hash without a Salt",
        severity=Severity.MEDIUM,
        title_en="Password hash without a salt",
        title_zh="口令哈希未加盐",
        message_en="Without a salt equal passwords have equal hashes, and tables made once break all of them.",
        message_zh="没有盐时相同口令得到相同哈希，预先计算的表即可全部破解。",
        fix_en="Pass a fresh `os.urandom(16)` as the salt and keep it beside the hash.",
        fix_zh="传入新生成的 `os.urandom(16)` 作为盐，并与哈希一起保存。",
        purpose="A salt makes every hash a work of its own for the one who guesses.",
        bad="""\
import hashlib

def protect(password):
    return hashlib.pbkdf2_hmac("sha256", password.encode(), b"", 600_000)
""",
        good="""\
import hashlib
import os

def protect(password):
    salt = os.urandom(16)
    return salt + hashlib.pbkdf2_hmac("sha256", password.encode(), salt, 600_000)
""",
        sheet="Password_Storage_Cheat_Sheet",
    ),
    Rule(
        id="constant-salt",
        cwe="CWE-760",
        name="Use of a One-Way Hash with a Predictable Salt",
        severity=Severity.MEDIUM,
        title_en="Predictable salt",
        title_zh="可预测的盐",
        message_en="One salt for all, or one that can be foreseen, lets a thief guess against every password at once.",
        message_zh="所有口令共用或可预知的盐，使窃取者能一次猜测全部口令。",
        fix_en="Make a fresh `os.urandom(16)` for each password and keep it beside the hash.",
        fix_zh="为每个口令新生成 `os.urandom(16)`，并与哈希一起保存。",
        purpose="A salt that is known before the theft can be worked on before the theft.",
        bad="""\
import hashlib

SALT = b"pepper and salt"

def protect(password):
    return hashlib.pbkdf2_hmac("sha256", password.encode(), SALT, 600_000)
""",
        good="""\
import hashlib
import os

def protect(password):
    salt = os.urandom(16)
    return salt + hashlib.pbkdf2_hmac("sha256", password.encode(), salt, 600_000)
""",
        sheet="Password_Storage_Cheat_Sheet",
    ),
    Rule(
        id="predictable-iv",
        cwe="CWE-329",
        name="Generation of Predictable IV with CBC Mode",
        severity=Severity.MEDIUM,
        title_en="Fixed initialization vector",
        title_zh="固定的初始化向量（IV）",
        message_en="The initialization vector is the same each time, so equal beginnings give equal ciphertext.",
        message_zh="每次使用相同的初始化向量，相同的开头会得到相同的密文。",
        fix_en="Make a fresh `os.urandom(16)` for each message and send it in front; better use AES-GCM.",
        fix_zh="为每条消息新生成 `os.urandom(16)` 并随密文发送；最好改用 AES-GCM。",
        purpose="The vector is what makes two messages under one key look unlike.",
        bad="""\
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

def seal(key, data):
    sealing = Cipher(algorithms.AES(key), modes.CBC(b"\\0" * 16)).encryptor()
    return sealing.update(data) + sealing.finalize()
""",
        good="""\
import os
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

def seal(key, data):
    iv = os.urandom(16)
    sealing = Cipher(algorithms.AES(key), modes.CBC(iv)).encryptor()
    return iv + sealing.update(data) + sealing.finalize()
""",
        sheet="Cryptographic_Storage_Cheat_Sheet",
    ),
    Rule(
        id="reused-nonce",
        cwe="CWE-323",
        name="Reusing a Nonce, Key Pair in Encryption",
        severity=Severity.HIGH,
        title_en="Nonce used more than once",
        title_zh="重复使用的随机数（nonce）",
        message_en="In this mode two messages under one nonce give away their difference, and the key of the seal.",
        message_zh="该模式下两条消息使用同一 nonce 会泄露明文差异以及认证密钥。",
        fix_en="Make a fresh `os.urandom(12)` for each message and send it in front.",
        fix_zh="为每条消息新生成 `os.urandom(12)` 并随密文发送。",
        purpose="CTR, GCM and ChaCha20 are only safe while no nonce comes twice.",
        bad="""\
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

def seal(key, data):
    return AESGCM(key).encrypt(b"000000000000", data, None)
""",
        good="""\
import os
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

def seal(key, data):
    nonce = os.urandom(12)
    return nonce + AESGCM(key).encrypt(nonce, data, None)
""",
        sheet="Cryptographic_Storage_Cheat_Sheet",
    ),
    Rule(
        id="rsa-without-oaep",
        cwe="CWE-780",
        name="Use of RSA Algorithm without OAEP",
        severity=Severity.MEDIUM,
        title_en="RSA encryption with the old padding",
        title_zh="RSA 加密使用旧式填充",
        message_en="PKCS #1 v1.5 encryption can be opened by one who learns whether the padding was right.",
        message_zh="PKCS #1 v1.5 加密可被能得知填充是否正确的人逐步解开。",
        fix_en="Encrypt with OAEP and SHA-256.",
        fix_zh="使用 OAEP 与 SHA-256 加密。",
        purpose="A server that tells bad padding from bad content decrypts for strangers (Bleichenbacher, 1998).",
        bad="""\
from cryptography.hazmat.primitives.asymmetric import padding

def wrap(public_key, secret):
    return public_key.encrypt(secret, padding.PKCS1v15())
""",
        good="""\
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding

def wrap(public_key, secret):
    oaep = padding.OAEP(mgf=padding.MGF1(hashes.SHA256()), algorithm=hashes.SHA256(), label=None)
    return public_key.encrypt(secret, oaep)
""",
        sheet="Cryptographic_Storage_Cheat_Sheet",
    ),
)
