"""What an engine only quotes: a request's text, a model's answer. Such words say nothing of the engine itself.

llama-server with `-v` prints whole requests and answers without a level; vLLM prints them at INFO and DEBUG.
"""

from __future__ import annotations

import re
from dataclasses import replace

from casemate.doctor.log.lines import Line

_QUIET = ("info", "debug", "")
_BEGINS = re.compile(
    r"""\b(?:Received|Added)\ request\b | \bGenerated\ response\b                                      # vLLM
      | \b(?:request|response|payload|prompt|outputs?|messages|chunk|to_send|completion|content)
        (?:\ \w{1,20})?:\s{0,3}(?:data:\s{0,2})?[{\["'`]                                               # both
      | \b(?:[Pp]arsing|[Pp]arsed)\ (?:chat\ )?(?:message|input|output|response)\b[^:]{0,40}:          # llama-server
      | (?:^|\bdata:\s{0,2})\{\s{0,3}"(?:id|model|messages|prompt|choices|object|input|role|content|tools|stream)"
        \s{0,3}:
      | \\{0,3}["'](?:content|text|prompt|messages|arguments|reasoning(?:_content)?|input|generated_text)
        \\{0,3}["']\s{0,3}:\s{0,3}\\{0,3}["'\[{]                                                                  # both
    """,
    re.VERBOSE,
)


def spoken(line: Line) -> Line:
    """The line without what it quotes from a request or an answer; a line of level WARNING or above stays whole."""
    if line.level not in _QUIET:
        return line
    found = _BEGINS.search(line.text)
    return line if found is None else replace(line, text=line.text[: found.end()])
