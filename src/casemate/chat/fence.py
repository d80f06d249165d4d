"""Fences that keep foreign text apart from instructions in a prompt.

Audited code, logs and retrieved passages are data. Each request draws its own nonce after the text is known, so the
text cannot contain the mark that would end its fence; look-alikes and the control words of chat templates are broken
all the same, because engines read those even inside a message.
"""

from __future__ import annotations

import re
import secrets

_SPEAKS = re.compile(
    r"(?<=\[)(?=\[\s*(?:data|end)\b|/?INST\])"
    r"|(?<=<)(?=[|\uff5c]|</?SYS>|/?s>|(?:start|end)_of_turn>)",
    re.IGNORECASE,
)
"""Inside the bracket that opens a mark of ours, or a control word: `<|im_start|>` and its kin, the full-width bars of
DeepSeek, `[INST]`, `<<SYS>>` and `</s>` of Llama and Mistral, `<start_of_turn>` of Gemma."""


def nonce() -> str:
    """A fresh mark for one request: 8 hexadecimal digits that no text of this request could foresee."""
    return secrets.token_hex(4)


def fenced(text: str, nonce: str) -> str:
    """The text between `[[data NONCE]]` and `[[end NONCE]]`, with everything removed that could end the fence early."""
    return f"[[data {nonce}]]\n{_harmless(text, nonce)}\n[[end {nonce}]]"


def _harmless(text: str, nonce: str) -> str:
    # Removing one nonce may join the halves of another.
    while nonce in text:
        text = text.replace(nonce, "")
    return _SPEAKS.sub(" ", text)
