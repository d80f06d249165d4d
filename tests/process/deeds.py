"""What the workers of the pool tests do: module-level functions, as `process.each` asks for."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from pathlib import Path


def square(number: int) -> int:
    return number * number


def length(text: str) -> int:
    return len(text)


def slow_if_even(number: int) -> int:
    time.sleep(0.1 if number % 2 == 0 else 0.0)
    return number


def my_pid(_: object) -> int:
    return os.getpid()


def variables(_: object) -> set[str]:
    return set(os.environ)


def misbehave(how: str) -> str:
    """One deed a word."""
    match how:
        case "sleep":
            time.sleep(60)
        case "hold the interpreter":
            ctypes.PyDLL(None).sleep(60)  # C code that never lets go, as a bad regular expression does
        case "crash":
            ctypes.string_at(0)
        case "leave":
            sys.exit(3)
        case "raise":
            raise ValueError("no good")
        case "hoard":
            return str(len("x" * (1 << 33)))
        case "hoard slowly":
            return str(len([str(number) for number in range(1 << 28)]))
        case "return a function":
            return lambda: None  # type: ignore[return-value] # what cannot be pickled is the point
    return how


def pid_then_sleep(note: str) -> None:
    """Say who we are, then hold on."""
    Path(note).write_text(str(os.getpid()))
    time.sleep(60)


def pid_at_once_then_sleep(note: str) -> None:
    """The first only says who it is; the others hold on."""
    Path(note).write_text(str(os.getpid()))
    time.sleep(0 if note.endswith("first") else 60)
