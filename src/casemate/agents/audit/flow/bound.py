"""Takes an SQL text that is put together apart into a constant template and the values to bind. Pure.

Only values can be bound. Where an untrusted part stands for a table, a column or a direction there is no answer.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

_VALUE_BEFORE = re.compile(
    r"(?:=|<|>|\b(?:like|ilike|limit|offset|between|and|in\s*\(|values\s*\()|values\s*\([^()]*,)\s*(?:'%?|\"%?|\(\s*)?$",
    re.IGNORECASE | re.DOTALL,
)
_FIELD = re.compile(r"\{(\w*)(?:![rs])?\}")
_CONVERSION = re.compile(r"%(?:\((\w+)\))?[sdir]")


@dataclass(frozen=True, slots=True)
class Statement:
    """A constant template with placeholders, and the expressions to bind, in order."""

    template: str
    values: tuple[ast.expr, ...]


def statement(node: ast.expr, placeholder: str) -> Statement | None:
    """The bound form of an SQL expression; None where a part cannot be bound or the form is not understood."""
    pieces = list(_pieces(node))
    if not pieces or any(piece is None for piece in pieces):
        return None
    text, values = "", []
    waiting = ""
    for index, piece in enumerate(pieces):
        if isinstance(piece, str):
            text += piece.removeprefix(waiting) if waiting else piece
            waiting = ""
            continue
        if not isinstance(piece, ast.expr) or not _VALUE_BEFORE.search(text):
            return None
        after = pieces[index + 1] if index + 1 < len(pieces) else ""
        bound = _bind(text, piece, after=after if isinstance(after, str) else "")
        if bound is None:
            return None
        text, value, waiting = bound[0] + placeholder, bound[1], bound[2]
        values.append(value)
    if placeholder == "?" and "?" in "".join(piece for piece in pieces if isinstance(piece, str)):
        return None
    return Statement(text, tuple(values)) if values else None


def _bind(text: str, value: ast.expr, *, after: str) -> tuple[str, ast.expr, str] | None:
    """The text before the placeholder without its quote, the value with its wildcards, and what to drop after it."""
    quote = re.search(r"(['\"])(%?)$", text)
    if quote is None:
        return (text, value, "") if not re.match(r"[\w'\"%]", after) else None
    closing = re.match(r"(%?)" + quote.group(1), after)
    if closing is None:
        return None
    before, behind = quote.group(2), closing.group(1)
    if before or behind:
        value = ast.JoinedStr(
            [ast.Constant(before), ast.FormattedValue(value, -1, None), ast.Constant(behind)]
            if before
            else [ast.FormattedValue(value, -1, None), ast.Constant(behind)]
        )
    return text[: quote.start()], value, closing.group()


def _pieces(node: ast.expr) -> Iterator[str | ast.expr | None]:
    """Constant texts and the expressions between them; None for what is not understood."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            for part in parts:
                yield from _pieces(part)
        case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
            yield value
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield from _pieces(left)
            yield from _pieces(right)
        case ast.BinOp(left=ast.Constant(value=str(template)), op=ast.Mod(), right=right):
            yield from _filled(template, _CONVERSION, args=_positional(right), named=_named(right))
        case ast.Call(
            func=ast.Attribute(value=ast.Constant(value=str(template)), attr="format"), args=args, keywords=keywords
        ):
            named = {keyword.arg: keyword.value for keyword in keywords if keyword.arg}
            yield from _filled(template, _FIELD, args=args, named=named)
        case ast.Call(func=ast.Name(id="str"), args=[value]):
            yield value
        case ast.Name() | ast.Attribute() | ast.Subscript() | ast.Call():
            yield node
        case _:
            yield None


def _positional(right: ast.expr) -> list[ast.expr]:
    return right.elts if isinstance(right, ast.Tuple) else [right]


def _named(right: ast.expr) -> dict[str, ast.expr]:
    if not isinstance(right, ast.Dict):
        return {}
    pairs = zip(right.keys, right.values, strict=True)
    return {str(key.value): value for key, value in pairs if isinstance(key, ast.Constant)}


def _filled(
    template: str, fields: re.Pattern[str], *, args: list[ast.expr], named: dict[str, ast.expr]
) -> Iterator[str | ast.expr | None]:
    at = 0
    for index, field in enumerate(fields.finditer(template)):
        yield template[at : field.start()].replace("%%", "%")
        key = field.group(1) or str(index)
        at = field.end()
        if key.isdigit():
            yield args[int(key)] if int(key) < len(args) else None
        else:
            yield named.get(key)
    yield template[at:].replace("%%", "%")
