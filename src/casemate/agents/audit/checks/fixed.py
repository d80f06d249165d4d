"""Where an expression gets its bytes from, by syntax: written in the source, made once, or taken from a key. Pure."""

from __future__ import annotations

import ast

from casemate.agents.audit.facts.definitions import Binding, Definitions, key_of, name_of

_SAME = frozenset({"encode", "fromhex", "b64decode", "unhexlify", "a2b_hex", "urlsafe_b64decode", "ljust", "rjust"})
_SAME |= {"digest", "hexdigest", "zfill", "to_bytes", "strip", "bytes", "bytearray", "str", "md5", "sha256", "sha1"}
_SAME |= {"b64encode", "urlsafe_b64encode", "sha512", "hex", "center", "SecretStr", "Initialization_Vector"}
_FRESH = frozenset({"urandom", "token_bytes", "get_random_bytes", "generate_nonce", "randbytes", "token_hex", "read"})
_DEPTH = 6


def is_fixed(definitions: Definitions, node: ast.expr | None, *, depth: int = 0) -> bool:  # noqa: PLR0911  # one case a form
    """Whether every way to this expression's value is written in the source."""
    if node is None or depth > _DEPTH:
        return False
    match node:
        case ast.Constant(value=value):
            return isinstance(value, bytes | str | int) and not isinstance(value, bool)
        case ast.BinOp(left=left, right=right):
            return is_fixed(definitions, left, depth=depth + 1) and _is_size_or_fixed(
                definitions, right, depth=depth + 1
            )
        case ast.Subscript(value=value, slice=ast.Slice()):
            return is_fixed(definitions, value, depth=depth + 1)
        case ast.Call(func=function, args=args, keywords=keywords) if name_of(function) in _SAME:
            inner = [function.value] if isinstance(function, ast.Attribute) and not _is_module(function.value) else []
            values = [*inner, *args]
            fixed = all(_is_size_or_fixed(definitions, value, depth=depth + 1) for value in values)
            return fixed and bool(values) and not keywords
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return bool(elements) and all(is_fixed(definitions, element, depth=depth + 1) for element in elements)
        case ast.Name() | ast.Attribute():
            return _all_fixed(definitions, key_of(node), depth=depth + 1)
        case _:
            return False


def is_made_once(definitions: Definitions, node: ast.expr | None, *, line: int) -> bool:
    """Whether a random value is made when the module is read, or in `__init__`, and used again at every call."""
    if not isinstance(node, ast.Name | ast.Attribute):
        return False
    given = definitions.bindings.get(key_of(node), [])
    around = definitions.around(line)
    if around is None or not given or (isinstance(node, ast.Name) and node.id in definitions.parameters):
        return False
    return all(_is_fresh(binding.value) and _is_before(binding, around) for binding in given)


def is_part_of(node: ast.expr | None, other: ast.expr | None) -> bool:
    """Whether one expression is the other, or a slice of it (an IV that is the key)."""
    if node is None or other is None:
        return False
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        node = node.value
    return not isinstance(node, ast.Constant) and ast.dump(node) == ast.dump(other)


def _is_before(binding: Binding, around: ast.AST) -> bool:
    outside = binding.function is None or binding.function.name == "__init__"
    return outside and binding.function is not around


def _is_fresh(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and name_of(node.func) in _FRESH


def _is_module(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in {"base64", "binascii", "hashlib", "bytes", "bytearray", "codecs"}


def _is_size_or_fixed(definitions: Definitions, node: ast.expr, *, depth: int) -> bool:
    size = isinstance(node, ast.Attribute) and node.attr in {"block_size", "key_size", "digest_size"}
    return size or is_fixed(definitions, node, depth=depth)


def _all_fixed(definitions: Definitions, name: str, *, depth: int) -> bool:
    given = definitions.bindings.get(name, [])
    if not given or name in definitions.parameters:
        return False
    return all(is_fixed(definitions, binding.value, depth=depth) for binding in given)
