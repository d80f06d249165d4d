"""A small engine's source of our own making, in the shapes in which vLLM's builds its parser."""

from __future__ import annotations

import zipfile
from pathlib import Path

ARG_UTILS = """
import argparse, json
from typing import get_args
from vllm.config import CacheConfig, ModelConfig, ParallelConfig
raise SystemExit("whoever runs this file has done it wrong")

def literal_to_kwargs(type_hints):
    kwarg = "metavar" if contains_type(type_hints, str) else "choices"

def _compute_kwargs(cls):
    if type_hints == {bool, str, type(None)}:
        pass
    elif name in {"max_num_batched_tokens"}:
        human_readable_int
    elif name == "max_model_len":
        human_readable_int_or_auto

def get_kwargs(cls):
    return _compute_kwargs(cls)

_GONE_DEPRECATION_MESSAGE = "--gone will be removed."

class EngineArgs:
    @staticmethod
    def add_cli_args(parser):
        model_kwargs = get_kwargs(ModelConfig)
        group = parser.add_argument_group(title="ModelConfig")
        if not ("serve" in sys.argv[1:]):
            group.add_argument("--model", **model_kwargs["model"])
        for name, kind in [("--old-one", str), ("--old-two", str)]:
            group.add_argument(name, type=kind, deprecated=True)
        group.add_argument("--max-model-len", **model_kwargs["max_model_len"])
        group.add_argument("--hf-token", **model_kwargs["hf_token"])
        group.add_argument("--mode", **model_kwargs["mode"])
        group.add_argument("--enforce-eager", **model_kwargs["enforce_eager"])
        group.add_argument("--enable-thing", **{**model_kwargs["enable_thing"], "default": None})
        cache_kwargs = get_kwargs(CacheConfig)
        cache_kwargs["cache_dtype"]["choices"].remove("secret")
        group.add_argument("--kv-cache-dtype", **cache_kwargs["cache_dtype"])
        group.add_argument("--max-num-batched-tokens", **cache_kwargs["max_num_batched_tokens"])
        backend = get_kwargs(ParallelConfig)["backend"]
        backend["type"] = lambda s: s.lower().replace("-", "_")
        group.add_argument("--backend", **backend)
        group.add_argument("--tensor-parallel-size", "-tp", **get_kwargs(ParallelConfig)["tensor_parallel_size"])
        parser.add_argument("--gone", action="store_true", help=_GONE_DEPRECATION_MESSAGE)
        parser.add_argument("--config-json", type=optional_type(json.loads))
        return parser

class AsyncEngineArgs(EngineArgs):
    @staticmethod
    def add_cli_args(parser, async_args_only=False):
        if not async_args_only:
            parser = EngineArgs.add_cli_args(parser)
        parser.add_argument("--enable-log-requests", action=argparse.BooleanOptionalAction, default=False)
        return parser
"""
CONFIG = """
from dataclasses import field
from typing import Literal
from .types import CacheDType, Sub

@config
class ModelConfig:
    model: str = "tiny"
    max_model_len: int | None = None
    hf_token: bool | str | None = None
    mode: Literal["slow", "fast"] | str = "fast"
    enforce_eager: bool = False
    enable_thing: bool = True
    ClassOnly: ClassVar[int] = 3

class Base:
    backend: Literal["one_way", "other_way"] = "one_way"

@config
class ParallelConfig(Base):
    tensor_parallel_size: int = Field(default=1, ge=1)

@config
class CacheConfig:
    cache_dtype: CacheDType = "auto"
    max_num_batched_tokens: int = 2048
    sub: Sub = field(default_factory=Sub)
"""
TYPES = """
from typing import Literal
CacheDType = Literal["auto", "fp8", "secret"]
@dataclass
class Sub: ...
"""
CLI_ARGS = """
import json
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.tool_parsers import ToolParserManager

@config
class FrontendArgs:
    port: int = 8000
    api_key: list[str] | None = None
    allowed_origins: list[str] = field(default_factory=list)
    tool_call_parser: str | None = None

    @classmethod
    def _customize_cli_kwargs(cls, frontend_kwargs):
        frontend_kwargs["allowed_origins"]["type"] = json.loads
        del frontend_kwargs["allowed_origins"]["nargs"]
        return frontend_kwargs

    @classmethod
    def add_cli_args(cls, parser):
        frontend_kwargs = get_kwargs(cls)
        frontend_kwargs = cls._customize_cli_kwargs(frontend_kwargs)
        for key, value in frontend_kwargs.items():
            parser.add_argument(f"--{key.replace('_', '-')}", **value)
        return parser

def make_arg_parser(parser):
    parser.add_argument("model_tag", nargs="?")
    parser.add_argument("--headless", action="store_true")
    parser = FrontendArgs.add_cli_args(parser)
    parser = AsyncEngineArgs.add_cli_args(parser)
    return parser
"""
SERVE = """
from vllm.entrypoints.openai.cli_args import make_arg_parser
class ServeSubcommand:
    def subparser_init(self, subparsers):
        serve_parser = subparsers.add_parser("serve")
        return make_arg_parser(serve_parser)
"""
MODULES = {
    "vllm/__init__.py": "",
    "vllm/engine/arg_utils.py": ARG_UTILS,
    "vllm/config/__init__.py": CONFIG,
    "vllm/config/types.py": TYPES,
    "vllm/entrypoints/openai/cli_args.py": CLI_ARGS,
    "vllm/entrypoints/openai/api_server.py": "pass",
    "vllm/entrypoints/cli/serve.py": SERVE,
    "vllm/tool_parsers/__init__.py": '_TOOL_PARSERS_TO_REGISTER = {"hermes": ("a", "B")}\nclass ToolParserManager: 1',
    "vllm/tool_parsers/mistral.py": '@ToolParserManager.register_module(["mistral", "pixtral"])\nclass M: ...\n',
    "vllm/utils/argparse_utils.py": "_inverse_prefixes = {}",
    "vllm/envs.py": 'environment_variables = {"VLLM_A": lambda: 1, "VLLM_B": lambda: 2, "HOME": lambda: 3}',
    "vllm-9.8.7.dist-info/METADATA": "Metadata-Version: 2.1\nName: vllm\nVersion: 9.8.7\n",
}


def unpacked(folder: Path) -> Path:
    """The source as a site-packages folder holds it."""
    for name, text in MODULES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def wheel(folder: Path) -> Path:
    """The source as a wheel."""
    path = folder / "vllm-9.8.7-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in MODULES.items():
            archive.writestr(name, text)
    return path
