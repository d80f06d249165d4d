from __future__ import annotations

import struct
import time
from pathlib import Path

import pytest

from casemate.doctor import fatbin
from casemate.errors import CasemateError
from fakes.nvidia_code import CHIP, CUBIN, FAMILY, PTX, elf, region


def listed(folder: Path, content: bytes, *, seconds: float = 5.0) -> tuple[str, ...]:
    path = folder / "lib.so"
    path.write_bytes(content)
    return fatbin.capabilities(path, deadline=time.monotonic() + seconds)


def test_every_architecture_of_every_region_is_listed_once_in_rising_order(tmp_path: Path) -> None:
    first = region([(CUBIN, 120, FAMILY), (CUBIN, 80, 0), (PTX, 80, 0), (CUBIN, 90, CHIP)])
    second = region([(CUBIN, 90, 0), (CUBIN, 80, 0), (CUBIN, 103, CHIP)], code=400)
    library = elf({".text": b"x" * 8, ".nv_fatbin": first + second, ".data": b"y"})
    assert listed(tmp_path, library) == ("8.0", "8.0+PTX", "9.0", "9.0a", "10.3a", "12.0f")


def test_a_relocatable_section_and_gaps_between_regions_are_read_too(tmp_path: Path) -> None:
    padded = region([(CUBIN, 75, 0)]) + bytes(24) + region([(CUBIN, 89, 0)])
    assert listed(tmp_path, elf({"__nv_relfatbin": padded})) == ("7.5", "8.9")


def test_a_kind_of_entry_that_is_no_code_is_passed_over(tmp_path: Path) -> None:
    assert listed(tmp_path, elf({".nv_fatbin": region([(64, 90, 0), (CUBIN, 90, 0)])})) == ("9.0",)


def test_a_library_without_device_code_has_none(tmp_path: Path) -> None:
    assert listed(tmp_path, elf({".text": b"x"})) == ()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "no ELF"),
        (b"#!/bin/sh\n", "no ELF"),
        (b"\x7fELF\x01\x01" + bytes(64), "no ELF"),
        (b"\x7fELF\x02\x01", "broken"),
        (elf({".nv_fatbin": region([(CUBIN, 90, 0)])})[:-70], "broken"),
        (b"\x7fELF\x02\x01" + b"\xff" * 58, "no table"),
        (elf({".nv_fatbin": struct.pack("<IHHQ", fatbin.MAGIC, 1, 16, 1 << 40) + bytes(200)}), "broken"),
    ],
    ids=["empty", "script", "32 bits", "torn head", "torn table", "wild numbers", "no entry header"],
)
def test_what_is_no_such_library_is_refused_with_a_reason(content: bytes, reason: str, tmp_path: Path) -> None:
    with pytest.raises(CasemateError, match=reason):
        listed(tmp_path, content)


def test_listing_ends_in_time(tmp_path: Path) -> None:
    with pytest.raises(CasemateError, match="in time"):
        listed(tmp_path, elf({".nv_fatbin": region([(CUBIN, 90, 0)])}), seconds=-1)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CasemateError, match="No such file"):
        fatbin.capabilities(tmp_path / "none.so", deadline=time.monotonic() + 1)


def test_the_runtime_that_a_library_asks_for_is_found(tmp_path: Path) -> None:
    names = b"\0libc.so.6\0libcudart.so.13\0"
    dynamic = struct.pack("<QQQQQQ", 1, 1, 1, 11, 0, 0)
    path = tmp_path / "lib.so"
    path.write_bytes(elf({".dynstr": names, ".dynamic": dynamic}))
    assert fatbin.runtime(path) == 13
    path.write_bytes(elf({".dynstr": names, ".dynamic": dynamic[:16]}))
    assert fatbin.runtime(path) is None
    path.write_bytes(b"no library")
    assert fatbin.runtime(path) is None
