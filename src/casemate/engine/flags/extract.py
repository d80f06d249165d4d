"""Reads the flags of `vllm serve` off an engine's source, by following the functions that build its parser.

Only what those functions do with options is understood: `get_kwargs(Class)`, its entries changed one by one, and
`add_argument`. Both branches of a condition count. Nothing of the source runs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast, get_args

from casemate.engine.flags.hints import Facts, Rules, fields
from casemate.engine.flags.keywords import given
from casemate.engine.flags.tree import Place, Tree
from casemate.errors import UsageError
from casemate.plan.recipe.flags import Flag, FlagTable, Form

_ENGINE = "vllm.engine.arg_utils"
_PARSERS = (
    ("vllm.entrypoints.cli.serve", "subparser_init"),
    ("vllm.scripts", "main"),
)
_SERVERS = ("vllm.entrypoints.api_server", "vllm.entrypoints.openai.api_server", "vllm.entrypoints.cli.main")
_REGISTRIES = {
    "tool-call-parser": ("_TOOL_PARSERS_TO_REGISTER", "ToolParserManager"),
    "reasoning-parser": ("_REASONING_PARSERS_TO_REGISTER", "ReasoningParserManager"),
}
_DEPTH = 12
_OTHER_COMMANDS = {"chat_parser", "complete_parser"}
"""Parsers of other subcommands that an old `main` builds beside that of serve."""


def table(texts: Mapping[str, str], version: str) -> FlagTable:
    """The flags of the engine whose modules these are, by dotted name.

    Raises:
        UsageError: there is no parser of `vllm serve` in them.
    """
    tree = Tree(texts)
    if not texts.get(_ENGINE):
        raise UsageError("this is no source of vLLM", where=_ENGINE, remedy="name the folder or wheel that holds vllm/")
    reader = _Reader(tree, Rules.of(texts[_ENGINE]))
    for module, name in _PARSERS:
        if started := _function(tree, module, name=name):
            reader.run(started, {})
            break
    flags = tuple(sorted(_flags(tree, reader.found), key=lambda flag: flag.name))
    if not flags:
        raise UsageError("no parser of vllm serve was found", where=version, remedy="read its --help instead")
    modules = tuple(module for module in _SERVERS if texts.get(module))
    return FlagTable(version, flags, modules, _variables(tree), origin=f"vllm {version} source")


@dataclass(slots=True)
class _Reader:
    tree: Tree
    rules: Rules
    found: dict[str, Facts] = field(default_factory=dict)
    depth: int = 0
    owner: Place | None = None
    """The class whose classmethod is being read: what `cls` stands for."""

    def run(self, place: Place, names: dict[str, Any]) -> None:
        """Follow a function; `names` are its parameters and locals as far as they hold options."""
        if self.depth < _DEPTH and isinstance(place.node, ast.FunctionDef):
            self.depth += 1
            self._block(place.module, place.node.body, names=names)
            self.depth -= 1

    def _block(  # noqa: C901 - one case for each statement that matters
        self, module: str, body: list[ast.stmt], *, names: dict[str, Any]
    ) -> None:
        for statement in body:
            match statement:
                case ast.Assign(targets=[target], value=value):
                    self._assign(module, (target, value), names=names)
                case ast.AugAssign(target=ast.Subscript(slice=ast.Constant(value="choices")) as target):
                    if isinstance(facts := self._value(module, target.value, names=names), dict):
                        facts["closed"] = False
                case ast.Delete(targets=targets):
                    for gone in targets:
                        self._delete(module, gone, names=names)
                case ast.Expr(value=ast.Call() as call) | ast.Return(value=ast.Call() as call):
                    self._call(module, call, names=names)
                case ast.For(target=ast.Tuple(), iter=ast.Call(func=ast.Attribute(value=over, attr="items"))):
                    self._every(statement, self._value(module, over, names=names))
                case ast.For(target=ast.Tuple(elts=targets), iter=ast.List(elts=rounds)):
                    for one in rounds:
                        self._block(module, statement.body, names=names | _paired(targets, one))
                case ast.If() | ast.With():
                    self._block(module, [*statement.body, *getattr(statement, "orelse", [])], names=names)

    def _assign(self, module: str, pair: tuple[ast.expr, ast.expr], *, names: dict[str, Any]) -> None:
        target, value = pair
        if isinstance(target, ast.Name):
            names[target.id] = self._value(module, value, names=names)
        elif isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
            facts = self._value(module, target.value, names=names)
            if isinstance(facts, dict):
                facts |= given(self.tree, str(target.slice.value), place=Place(module, value))

    def _delete(self, module: str, gone: ast.expr, *, names: dict[str, Any]) -> None:
        match gone:
            case ast.Subscript(value=inner, slice=ast.Constant(value="nargs")):
                if isinstance(facts := self._value(module, inner, names=names), dict):
                    facts.pop("arity", None)

    def _value(self, module: str, node: ast.expr, *, names: dict[str, Any]) -> Any:
        """What an expression holds of options: all of a class, one field's facts, or None."""
        match node:
            case ast.Name(id=name):
                return names.get(name)
            case ast.Subscript(value=inner, slice=ast.Constant(value=str() as key)):
                held = self._value(module, inner, names=names)
                return held.get(key) if isinstance(held, dict) else None
            case ast.Dict(keys=[None, *keys], values=[first, *values]):
                held = self._value(module, first, names=names)
                return dict(held) | self._overriding(module, zip(keys, values, strict=True)) if held else None
            case ast.Call(func=ast.Name(id="get_kwargs"), args=[ast.Name(id=name)]):
                place = self.owner if name == "cls" else self._class(module, name)
                return fields(self.tree, place, rules=self.rules) if place else None
            case ast.Call() as call:
                return self._call(module, call, names=names)
        return None

    def _overriding(self, module: str, pairs: Iterable[tuple[ast.expr | None, ast.expr]]) -> Facts:
        known = [(str(key.value), value) for key, value in pairs if isinstance(key, ast.Constant)]
        return {
            name: fact
            for key, value in known
            for name, fact in given(self.tree, key, place=Place(module, value)).items()
        }

    def _call(self, module: str, call: ast.Call, *, names: dict[str, Any]) -> Any:
        match call.func:
            case ast.Attribute(attr="add_argument"):
                self._argument(module, call, names=names)
            case ast.Attribute(value=ast.Subscript(value=inner, slice=ast.Constant(value="choices")), attr="remove"):
                facts, gone = self._value(module, inner, names=names), self.tree.constant(module, call.args[0])
                if isinstance(facts, dict):
                    facts["values"] = tuple(value for value in facts.get("values", ()) if value != gone)
            case ast.Attribute(value=ast.Name(id=owner), attr="add_cli_args"):
                self._method(self._class(module, owner), "add_cli_args", names={})
            case ast.Attribute(value=ast.Name(id="cls") | ast.Call(func=ast.Name(id="super")), attr=name):
                held = self._value(module, call.args[0], names=names) if call.args else None
                self._customized(call.func.value, name, held=held)
                return held
            case ast.Name(id="make_arg_parser"):
                if place := self.tree.find(module, "make_arg_parser"):
                    self.run(place, {})
        return None

    def _method(self, owner: Place | None, name: str, *, names: dict[str, Any]) -> None:
        if owner and (method := self.tree.method(owner, name)):
            before, self.owner = self.owner, owner
            self.run(method, names)
            self.owner = before

    def _customized(self, receiver: ast.expr, name: str, *, held: Any) -> None:
        """`cls.method(kwargs)` or `super().method(kwargs)`: the first parameter holds what was handed over."""
        if self.owner is None:
            return
        owners = [self.owner] if isinstance(receiver, ast.Name) else list(self.tree.bases(self.owner))
        for owner in owners[:1]:
            if (method := self.tree.method(owner, name)) and isinstance(method.node, ast.FunctionDef):
                parameters = [argument.arg for argument in method.node.args.args if argument.arg != "cls"]
                self._method(owner, name, names=dict.fromkeys(parameters[:1], held))

    def _every(self, loop: ast.For, held: Any) -> None:
        """`for key, value in kwargs.items(): group.add_argument(f"--{key}", **value)`."""
        adds = any(isinstance(node, ast.Attribute) and node.attr == "add_argument" for node in ast.walk(loop))
        if adds and isinstance(held, dict):
            for key, facts in held.items():
                self.found[key.replace("_", "-")] = dict(facts)

    def _argument(self, module: str, call: ast.Call, *, names: dict[str, Any]) -> None:
        if isinstance(receiver := getattr(call.func, "value", None), ast.Name) and receiver.id in _OTHER_COMMANDS:
            return
        positional = [_bound(argument, names) for argument in call.args]
        spelled = [str(value) for argument in positional if (value := self.tree.constant(module, argument))]
        long = [name for name in spelled if name.startswith("--")]
        if not long:
            return
        facts: Facts = {"form": "str"}
        for keyword in call.keywords:
            if keyword.arg is None:
                facts |= self._value(module, keyword.value, names=names) or {}
            else:
                facts |= given(self.tree, keyword.arg, place=Place(module, _bound(keyword.value, names)))
        facts["aliases"] = tuple(name for name in spelled if name != long[0])
        self.found[long[0].removeprefix("--").replace("_", "-")] = facts

    def _class(self, module: str, name: str) -> Place | None:
        found = self.tree.find(module, name)
        if found and isinstance(found.node, ast.ClassDef):
            return found
        return next(self.tree.classes(name), None)


def _paired(targets: list[ast.expr], values: ast.expr) -> dict[str, Any]:
    """The names of a loop over literal tuples, bound to the syntax of one round."""
    items = values.elts if isinstance(values, ast.Tuple) else [values]
    return {name.id: item for name, item in zip(targets, items, strict=False) if isinstance(name, ast.Name)}


def _bound(node: ast.expr, names: Mapping[str, Any]) -> ast.expr:
    held = names.get(node.id) if isinstance(node, ast.Name) else None
    return held if isinstance(held, ast.expr) else node


def _flags(tree: Tree, found: Mapping[str, Facts]) -> Iterator[Flag]:
    twins = "_inverse_prefixes" in tree.texts.get("vllm.utils.argparse_utils", "")
    for name, facts in found.items():
        form = facts.get("form", "str")
        if form == "pair" and twins and name.startswith(("enable-", "disable-")):
            form = "twin"
        values = tuple(facts.get("values", ()))
        if name in _REGISTRIES and not values:
            values = tuple(sorted(_registered(tree, _REGISTRIES[name][0], manager=_REGISTRIES[name][1])))
        if name == "quantization" and not values:
            values = tuple(_quantizations(tree))
        yield Flag(
            name=name,
            form=cast("Form", form if form in get_args(Form) else "str"),
            arity=facts.get("arity", ""),
            aliases=facts.get("aliases", ()),
            values=values,
            closed=bool(values) and facts.get("closed", False),
            default="" if form in ("switch", "json", "pairs") else facts.get("default", ""),
            deprecated=facts.get("deprecated", False),
        )


def _registered(tree: Tree, table_name: str, *, manager: str) -> Iterator[str]:
    """Names that a registry of parsers holds: the keys of its table, or what decorates the parsers."""
    for module, text in tree.texts.items():
        if module.endswith(".__init__") or (table_name not in text and f"{manager}.register" not in text):
            continue
        scope = tree.scope(module)
        if isinstance(node := scope.get(table_name), ast.Assign):
            yield from tree.strings(module, node.value) or []
        marks = (
            mark for holder in scope.values() if isinstance(holder, ast.ClassDef) for mark in holder.decorator_list
        )
        for mark in marks:
            if isinstance(mark, ast.Call) and ast.unparse(mark.func) == f"{manager}.register_module":
                named = [*mark.args, *(keyword.value for keyword in mark.keywords if keyword.arg == "name")]
                first = named[0] if named else None
                yield from tree.strings(module, first) or filter(None, [tree.constant(module, first)])


def _quantizations(tree: Tree) -> list[str]:
    module = "vllm.model_executor.layers.quantization"
    for name in ("QuantizationMethods", "QUANTIZATION_METHODS"):
        found = tree.strings(module, ast.Name(id=name, ctx=ast.Load()))
        if found:
            return sorted(set(found))
    return []


def _variables(tree: Tree) -> tuple[str, ...]:
    node = tree.scope("vllm.envs").get("environment_variables")
    held = (
        tree.strings("vllm.envs", node.value) if isinstance(node, ast.Assign | ast.AnnAssign) and node.value else None
    )
    return tuple(sorted(name for name in held or () if name.startswith("VLLM_")))


def _function(tree: Tree, module: str, *, name: str) -> Place | None:
    for node in tree.scope(module).values():
        if isinstance(node, ast.ClassDef) and (method := tree.method(Place(module, node), name)):
            return method
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return Place(module, node)
    return None
