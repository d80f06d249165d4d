"""Documents as one self-contained page: no script, no request, its style inline under a policy that names its hash."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from typing import assert_never

from markupsafe import Markup

from casemate.report import document as d
from casemate.report.style import CSS
from casemate.report.verbatim import difference, listing


def policy() -> str:
    """The Content-Security-Policy for a rendered page: nothing but its own style. The page carries it too."""
    digest = base64.b64encode(hashlib.sha256(CSS.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def render(document: d.Document) -> str:
    """The document as a complete HTML page; every text in it is escaped."""
    document = d.shown(document)
    return _PAGE.format(
        language=document.language,
        policy=policy(),
        title=d.one_line(document.title),
        # The style is ours, and escaping it would change the bytes that the policy hashes.
        style=Markup(CSS),  # noqa: S704 - our own constant
        lead=_blocks(document.lead),
        contents=_contents(document),
        sections=_lines(_section(section) for section in document.sections),
    )


_PAGE = Markup("""<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
<h1>{title}</h1>
{lead}
{contents}{sections}
</main>
</body>
</html>
""")
_FILTER = Markup('<input type="radio" name="only" id="only-{0}"{1}><label for="only-{0}">{2}</label>')
_CHECKED = Markup(" checked")


def _contents(document: d.Document) -> Markup:
    reachable = [section for section in document.sections if section.anchor]
    if not document.contents or not reachable:
        return Markup()
    entries = _lines(
        Markup('<li><a href="#{}">{}</a></li>').format(section.anchor, d.one_line(section.title))
        for section in reachable
    )
    return Markup('<nav aria-label="{0}"><strong>{0}</strong>\n<ul>\n{1}\n</ul></nav>\n').format(
        document.contents, entries
    )


def _section(section: d.Section) -> Markup:
    page = Markup("<section{}>\n<h2>{}</h2>\n{}\n{}{}\n</section>")
    filters = _joined(
        _FILTER.format(kind or "all", _CHECKED if not kind else "", label) for kind, label in section.filters
    )
    inner = _lines(_article(part) for part in section.sections)
    return page.format(_named(section), d.one_line(section.title), _blocks(section.blocks), filters, inner)


def _article(part: d.Section) -> Markup:
    page = Markup('<article class="{}"{}>\n<h3>{}</h3>\n{}\n</article>')
    return page.format(part.kind, _named(part), d.one_line(part.title), _blocks(part.blocks))


def _named(section: d.Section) -> Markup:
    return Markup(' id="{}"').format(section.anchor) if section.anchor else Markup()


def _blocks(blocks: tuple[d.Block, ...]) -> Markup:
    return _lines(_block(block) for block in blocks)


def _block(block: d.Block) -> Markup:
    match block:
        case d.Paragraph(text=text):
            page = _prose(text)
        case d.Verdict(tone=tone, text=text):
            page = Markup('<p class="verdict {}">{}</p>').format(tone, text)
        case d.Figures(figures=figures):
            pairs = _lines(Markup("<dt>{}</dt><dd>{}</dd>").format(f.label, _inline(f.value)) for f in figures)
            page = Markup("<dl>\n{}\n</dl>").format(pairs)
        case d.Table(header=header, rows=rows):
            page = _table(header, rows)
        case d.Code(caption=caption) | d.Change(caption=caption):
            code = listing(block) if isinstance(block, d.Code) else difference(block)
            page = Markup("<figure>{}<pre><code>{}</code></pre></figure>").format(_caption(caption), code)
        case d.Steps(steps=steps, caption=caption):
            items = _lines(Markup("<li>{}</li>").format(_step(step)) for step in steps)
            page = Markup('<figure>{}<ol class="steps">\n{}\n</ol></figure>').format(_caption(caption), items)
        case d.Quote(speaker=speaker, text=text):
            page = Markup("<blockquote><cite>{}</cite>{}</blockquote>").format(speaker, _prose(text))
        case d.Links(label=label, addresses=addresses):
            items = _lines(Markup("<li>{}</li>").format(_address(address)) for address in addresses)
            page = Markup("<figure>{}<ul>\n{}\n</ul></figure>").format(_caption(label), items)
        case d.Fold(title=title, blocks=blocks):
            page = Markup("<details><summary>{}</summary>\n{}\n</details>").format(title, _blocks(blocks))
        case _:
            assert_never(block)
    return page


def _step(step: d.Step) -> Markup:
    place = Markup('<span class="place">{}</span>').format(step.place) if step.place else Markup()
    if step.target:
        place = Markup('<a href="#{}">{}</a>').format(step.target, place)
    code = Markup("<pre><code>{}</code></pre>").format(step.code) if step.code else Markup()
    return Markup("{} {}{}").format(place, _inline(step.note), code)


def _table(header: tuple[str, ...], rows: tuple[tuple[str, ...], ...]) -> Markup:
    head = _joined(Markup('<th scope="col">{}</th>').format(cell) for cell in header)
    body = _lines(
        Markup("<tr>{}</tr>").format(_joined(Markup("<td>{}</td>").format(_inline(cell)) for cell in row))
        for row in rows
    )
    page = Markup('<div class="wide"><table>\n<thead><tr>{}</tr></thead>\n<tbody>\n{}\n</tbody>\n</table></div>')
    return page.format(head, body)


def _caption(caption: str) -> Markup:
    return Markup("<figcaption>{}</figcaption>").format(caption) if caption else Markup()


def _address(address: str) -> Markup:
    if not d.is_link(address):
        return Markup("{}").format(address)
    return Markup('<a href="{0}" rel="noopener noreferrer">{0}</a>').format(address)


def _prose(text: str) -> Markup:
    return _lines(Markup("<p>{}</p>").format(_inline(line)) for line in text.split("\n") if line.strip())


def _inline(text: str) -> Markup:
    return _joined(
        Markup("<code>{}</code>").format(piece) if code else Markup("{}").format(piece) for piece, code in d.spans(text)
    )


def _lines(pieces: Iterable[Markup]) -> Markup:
    return Markup("\n").join(pieces)


def _joined(pieces: Iterable[Markup]) -> Markup:
    return Markup("").join(pieces)
