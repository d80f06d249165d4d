"""The only reader of environment variables and configuration files.

Precedence: environment (`CASEMATE_*`), then `casemate.toml` in the home folder, then the defaults here. An unknown key
is an error that names key, value and source. Read once at a roof and passed down by argument.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import Field, SecretStr, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from casemate.errors import SettingsError

_PREFIX = "CASEMATE_"
_ENGINE_KEY = "CASEMATE_ENGINE_KEY"
"""Not a setting: the per-launch key that the supervisor hands to the engine's process."""


class Settings(BaseSettings):
    """Everything a user can set. Frozen; every field has its line in docs/settings.md."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX, extra="forbid", frozen=True, validate_default=True)

    home: Path = Field(default=Path("~/.casemate"), description="artefacts, graph, run folders, platform state")
    host: str = Field(default="127.0.0.1", description="address of the gateway; loopback only")
    port: int = Field(default=8642, ge=0, le=65535, description="port of the gateway; 0 picks a free one")
    model: str = Field(default="qwen2.5-coder-1.5b", description="artefact name of the model to run first")
    engine_url: str = Field(default="", description="an OpenAI-compatible server to use instead of starting an engine")
    engine_model: str = Field(default="", description="name of the model at engine_url")
    engine_api_key: SecretStr = Field(default=SecretStr(""), description="key for engine_url")
    threads: int = Field(default=0, ge=0, description="threads for the CPU engine; 0 takes every core that we may use")
    context: int = Field(default=4096, ge=512, description="context window of the CPU engine in tokens")
    embedding: bool = Field(
        default=False,
        description="embed the graph in the background while a platform runs, so that search finds meaning",
    )
    offline: bool = Field(default=False, description="never fetch; use what is already in the home folder")

    @property
    def root(self) -> Path:
        """The home folder, absolute."""
        return self.home.expanduser().resolve()

    @property
    def artifacts(self) -> Path:
        """Where pinned bytes lie."""
        return self.root / "artifacts"

    @property
    def sources(self) -> Path:
        """Where updates keep the newer sources of the graph."""
        return self.root / "sources"

    @property
    def graph(self) -> Path:
        """The knowledge graph's file."""
        return self.root / "graph.sqlite"

    @property
    def runs(self) -> Path:
        """The folder of all sealed runs."""
        return self.root / "runs"

    @property
    def audits(self) -> Path:
        """What audits leave for the next audit of the same place: summaries of the code, secrets masked."""
        return self.root / "audits"

    @property
    def state(self) -> Path:
        """Where the running platform leaves its address for the other commands."""
        return self.root / "platform.json"

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments, then environment, then the file."""
        del dotenv_settings, file_secret_settings  # two more sources would be two more places to look
        home = Path(os.environ.get(f"{_PREFIX}HOME", cls.model_fields["home"].default)).expanduser()
        return (init_settings, env_settings, TomlConfigSettingsSource(settings_cls, home / "casemate.toml"))


def load(**overrides: Any) -> Settings:
    """Read the settings.

    Args:
        overrides: values given on the command line, by field name; they win over every source.

    Raises:
        SettingsError: a key is unknown or a value malformed.
    """
    _refuse_unknown_environment()
    try:
        return Settings(**overrides)
    except ValidationError as error:
        raise SettingsError(
            _complaint(error.errors()[0]), where="environment or casemate.toml", remedy="see docs/settings.md"
        ) from None  # the cause would carry the value, which may be a secret
    except ValueError as error:
        raise SettingsError(f"casemate.toml is not TOML: {error}", remedy="mend or remove the file") from error


def engine_key() -> str:
    """The per-launch key in an engine's own process; empty elsewhere."""
    return os.environ.get(_ENGINE_KEY, "")


def of_environment(names: Iterable[str]) -> dict[str, str]:
    """Those of the named variables that are set, an empty one too; what is not named is never seen."""
    return {name: os.environ[name] for name in names if name in os.environ}


def child_environment(**extra: str) -> dict[str, str]:
    """The environment for a child process: ours without any secret, plus `extra`."""
    secret = {_ENGINE_KEY, f"{_PREFIX}ENGINE_API_KEY"}
    return {key: value for key, value in os.environ.items() if key not in secret} | extra


def _complaint(first: ErrorDetails) -> str:
    """What is wrong with one setting. Its value is shown only for a known one that holds no secret."""
    key = ".".join(str(part) for part in first["loc"])
    field = Settings.model_fields.get(key)
    if field is None:
        return f"unknown setting {key!r}"
    got = "" if field.annotation is SecretStr else f", got {first['input']!r}"
    return f"setting {key!r} is wrong: {first['msg']}{got}"


def _refuse_unknown_environment() -> None:
    known = {f"{_PREFIX}{name.upper()}" for name in Settings.model_fields} | {_ENGINE_KEY}
    for key in os.environ:
        if key.startswith(_PREFIX) and key not in known:
            raise SettingsError(f"unknown setting {key!r}", where="environment", remedy="see docs/settings.md")
