"""What to do about a weakness in JavaScript, where the rule's own words speak of Python. Facts, in both languages."""

from __future__ import annotations

from collections.abc import Mapping

from casemate.agents.phrases import Language

SUFFIXES = (".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx")
"""Endings of files in JavaScript and TypeScript."""
_ADVICE: Mapping[str, tuple[str, str]] = {
    "sql-injection": (
        "Bind values as parameters (`?`, `$1`). A table or column name cannot be bound: choose it from a fixed list.",
        "用参数绑定值（`?`、`$1`）。表名和列名不能绑定：从固定列表中选取。",
    ),
    "nosql-injection": (
        "Convert each field to the type that it must have (`String(...)`), and never pass `$where` text.",
        "把每个字段转换为应有的类型（`String(...)`），不要传递 `$where` 文本。",
    ),
    "ldap-injection": (
        "Let the library build the filter (`new EqualityFilter(...)`), or allow letters and digits only.",
        "用库的过滤器类构造过滤条件（`new EqualityFilter(...)`），或只允许字母和数字。",
    ),
    "xpath-injection": (
        "Pass the value as an XPath variable (`xpath.parse(...).select({ variables })`).",
        "把值作为 XPath 变量传入（`xpath.parse(...).select({ variables })`）。",
    ),
    "regex-injection": (
        "Escape it (`RegExp.escape`, `escape-string-regexp`), or search for it as plain text with `includes`.",
        "先转义（`RegExp.escape`、`escape-string-regexp`），或用 `includes` 按普通文本查找。",
    ),
    "command-injection": (
        "Use `execFile` or `spawn` with a list of arguments and without `shell`.",
        "使用 `execFile` 或 `spawn`，以列表传递参数，不使用 `shell`。",
    ),
    "eval-injection": (
        "Use `JSON.parse` for data, or look the wish up in a table of what is allowed.",
        "数据用 `JSON.parse` 读取，或在允许的表中查找所需操作。",
    ),
    "code-injection": (
        "Choose the function from a fixed table by the untrusted name; `vm` is no sandbox.",
        "用不可信的名称在固定表中选取函数；`vm` 不是沙箱。",
    ),
    "unsafe-deserialization": (
        "Use `JSON.parse` and check the shape of what it gives.",
        "使用 `JSON.parse`，并检查结果的结构。",
    ),
    "xml-external-entity": (
        "Leave `noent` off, so that entities are not expanded.",
        "不要打开 `noent`，使实体不被展开。",
    ),
    "path-traversal": (
        "Compare the resolved path with `root + path.sep`, keep only `path.basename`, or give `sendFile` a `root`.",
        "解析后与 `root + path.sep` 比较，或只保留 `path.basename`，或给 `sendFile` 指定 `root`。",
    ),
    "cross-site-scripting": (
        "Set `textContent`, clean markup with DOMPurify, render a template that escapes, or send JSON.",
        "使用 `textContent`，用 DOMPurify 清理标记，使用自动转义的模板，或发送 JSON。",
    ),
    "open-redirect": (
        "Go only to addresses of this site: one that begins with a single slash, or a host from a fixed list.",
        "只跳转到本站地址：以单个斜杠开头的地址，或固定列表中的主机。",
    ),
    "weak-hash": (
        "Use SHA-256 for signatures and checks, a password hash (scrypt, argon2, bcrypt) for passwords.",
        "签名和校验使用 SHA-256，口令使用口令散列（scrypt、argon2、bcrypt）。",
    ),
    "fast-password-hash": (
        "Use `crypto.scrypt`, argon2 or bcrypt, or PBKDF2 with at least 600,000 rounds.",
        "使用 `crypto.scrypt`、argon2 或 bcrypt，或至少 600,000 轮的 PBKDF2。",
    ),
    "weak-randomness": (
        "Use `crypto.randomBytes`, `crypto.randomUUID` or, in a browser, `crypto.getRandomValues`.",
        "使用 `crypto.randomBytes`、`crypto.randomUUID`，浏览器中使用 `crypto.getRandomValues`。",
    ),
    "jwt-not-verified": (
        "Call `jwt.verify` with the key and a fixed list of algorithms; never `none`, never `decode` alone.",
        "用密钥和固定的算法列表调用 `jwt.verify`；绝不用 `none`，也不要只用 `decode`。",
    ),
    "token-never-expires": (
        "Leave `ignoreExpiration` off, and put an end into every token (`expiresIn`).",
        "不要打开 `ignoreExpiration`，并为每个令牌设定期限（`expiresIn`）。",
    ),
    "certificate-not-verified": (
        "Leave verification on; for a private authority pass its certificate (`ca`).",
        "保持校验开启；私有机构则传入其证书（`ca`）。",
    ),
    "cookie-without-secure": ("Set `secure: true`.", "设置 `secure: true`。"),
    "cookie-without-httponly": ("Set `httpOnly: true`.", "设置 `httpOnly: true`。"),
    "cookie-for-other-sites": ("Set `sameSite: 'lax'` or `'strict'`.", "设置 `sameSite: 'lax'` 或 `'strict'`。"),
    "cross-origin-open": (
        "List the origins that `cors` lets in, or leave `credentials` out.",
        "在 `cors` 中列出允许的来源，或不使用 `credentials`。",
    ),
}


def advice(rule: str, path: str, *, language: Language) -> str:
    """What to do, for a finding in a file of JavaScript or TypeScript; empty where the rule's own words do."""
    if not path.lower().endswith(SUFFIXES) or rule not in _ADVICE:
        return ""
    return _ADVICE[rule][1 if language == "zh" else 0]
