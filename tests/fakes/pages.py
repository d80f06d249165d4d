"""Pages and JSON as a client without JavaScript gets them."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import orjson


class Page(HTMLParser):
    """A page's tags with their attributes, its text in one line, and where its links of a kind lead."""

    def __init__(self, reply: tuple[int, str, Any]) -> None:
        super().__init__()
        self.status, source, self.headers = reply
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.raw = ""
        self.feed(source)
        self.text = " ".join(self.raw.split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.raw += data

    def links(self, path: str, *kept: str) -> list[dict[str, list[str]]]:
        """The parameters of the links to a path; those to another language only if asked for."""
        given = [given for tag, given in self.tags if tag == "a" and "href" in given]
        found = [urlsplit(one["href"] or "") for one in given if "hreflang" not in one or "hreflang" in kept]
        return [parse_qs(link.query) for link in found if link.path == path and not link.netloc]

    def nodes(self) -> list[str]:
        return [link["id"][0] for link in self.links("/graph/node") if "id" in link]

    def count(self, tag: str, css: str = "") -> int:
        return sum(name == tag and (not css or css in (given.get("class") or "").split()) for name, given in self.tags)


async def get(address: str, path: str, **parameters: str) -> tuple[int, str, Any]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(address + path, params=parameters, allow_redirects=False) as response,
    ):
        return response.status, await response.text(), response.headers


async def page(address: str, path: str, **parameters: str) -> Page:
    return Page(await get(address, path, **{"lang": "en"} | parameters))


async def twin(address: str, path: str, **parameters: str) -> tuple[int, Any]:
    status, text, headers = await get(address, path, **parameters)
    assert headers["Content-Type"] == "application/json"
    value = orjson.loads(text)
    assert value["schema_version"] == 1
    return status, value
