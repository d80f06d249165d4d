"""Takes samples: the engine over HTTP, the cards through their child, host and log from files; one each interval."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from casemate.doctor import pci
from casemate.doctor.watch.cards import START_S, Cards
from casemate.doctor.watch.host import Host
from casemate.doctor.watch.log_tail import LogTail
from casemate.doctor.watch.sample import CardSample, Sample
from casemate.doctor.watch.scraping import Scraper

ELSEWHERE: Final = "the engine is on another host: its cards are seen by watching there"
_LOOK_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to watch.

    Args:
        url: the engine's address.
        key: bearer token for it; empty sends none.
        interval_s: seconds between samples.
        log: the engine's log, if it is to be followed.
        variables: the environment that the driver's library sees.
    """

    url: str
    key: str = field(default="", repr=False)
    interval_s: float = 1.0
    log: Path | None = None
    variables: Mapping[str, str] = field(default_factory=dict)


async def samples(wanted: Wanted) -> AsyncGenerator[Sample, None]:
    """A sample each interval, without end; closing the iterator ends whatever was started for it.

    Raises:
        UsageError: the address or the log cannot be used.
    """
    scraper = Scraper(wanted.url, key=wanted.key)
    log = LogTail(wanted.log) if wanted.log else None
    port = _port_here(wanted.url)
    host = Host(port=port) if port else None
    with Cards(interval_s=wanted.interval_s, variables=wanted.variables) if port else _None() as cards:
        async with scraper:
            await _settled(cards)
            due = time.monotonic()
            while True:
                yield await _sample(scraper, cards, host=host, log=log)
                due = max(due + wanted.interval_s, time.monotonic())
                await asyncio.sleep(due - time.monotonic())


async def _sample(scraper: Scraper, cards: Cards | None, *, host: Host | None, log: LogTail | None) -> Sample:
    reach, engine, why = await scraper.scrape()
    told, cards_why = _cards(cards)
    return Sample(
        time_s=time.monotonic(),
        reach=reach,
        engine=engine,
        reach_error=why,
        cards=told,
        cards_error=cards_why,
        host=host.sample([use.pid for card in told for use in card.processes]) if host else None,
        log=log.sample() if log else None,
    )


def _cards(cards: Cards | None) -> tuple[tuple[CardSample, ...], str]:
    """The newest of the cards; that there are none is no error where the bus shows none."""
    if cards is None:
        return (), ELSEWHERE
    told, why = cards.newest()
    if why:
        bus = pci.look()
        why = "" if bus.seen and not bus.cards else why
    return told, why


async def _settled(cards: Cards | None) -> None:
    """Wait for the first word of the driver, within reason."""
    until = time.monotonic() + START_S
    while cards is not None and not cards.settled and time.monotonic() < until:  # noqa: ASYNC110 - a pipe is looked at
        await asyncio.sleep(_LOOK_S)


def _port_here(url: str) -> int:
    """The port, if the address is one of this host's own; else 0. Only an own address can be bound."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    name = "127.0.0.1" if parts.hostname == "localhost" else parts.hostname or ""
    with suppress(ValueError, OSError):
        address = ipaddress.ip_address(name)
        kind = socket.AF_INET6 if address.version == 6 else socket.AF_INET
        with socket.socket(kind, socket.SOCK_DGRAM) as test:
            test.bind((str(address), 0))
        return port
    return 0


class _None:
    """Stands where no cards are watched."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None
