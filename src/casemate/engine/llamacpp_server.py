"""The process that `llamacpp` starts: llama.cpp's HTTP server until somebody ends us. Nobody else may import this.

SIGTERM keeps its default, and we leave without tidying: there is nothing to save, and destroying a server that has
answered nothing yet hangs in one of four runs.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys

import xllamacpp

from casemate import settings

_PROMPT_CACHE_MIB = 64
"""The default of 8 GiB would come on top of what the plan counted."""


def main() -> None:
    """Serve on loopback until stdin closes, which is the keeper's end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        _server = xllamacpp.Server(_parameters(_arguments(), settings.engine_key()))
    except RuntimeError:  # its log says why; an orderly exit is what writes the log to its end
        sys.exit(1)
    sys.stdin.buffer.read()
    os._exit(0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="casemate.engine.llamacpp_server")
    parser.add_argument("--path", required=True)
    parser.add_argument("--name", required=True)
    for number in ("--context", "--slots", "--threads", "--port"):
        parser.add_argument(number, type=int, required=True)
    return parser.parse_args()


def _parameters(wanted: argparse.Namespace, key: str) -> xllamacpp.CommonParams:
    if not key:
        sys.exit("no key in CASEMATE_ENGINE_KEY: an engine without one would answer anybody on this machine")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = wanted.path
    parameters.model_alias = {wanted.name}
    parameters.n_ctx = wanted.context * wanted.slots
    parameters.n_parallel = wanted.slots
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = wanted.threads
    parameters.cache_ram_mib = _PROMPT_CACHE_MIB
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = wanted.port
    parameters.api_keys = [key]
    parameters.endpoint_metrics = True
    parameters.endpoint_slots = parameters.ui = False
    parameters.fit_params = False  # the plan has fitted it
    parameters.warmup = False  # the supervisor asks for the first token
    return parameters


if __name__ == "__main__":
    main()
