"use strict";

// Streamed answers: the events of /v1/chat/completions, and text as DOM. Text from a model is only ever put into the
// page as text: no markup of its own, no link, no image.

/** Yield each JSON value of an event stream, wherever the network cuts it; a stream without its end is an error. */
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Error("cut");
    const lines = (rest + value).split(/\r\n|\n/);
    rest = lines.pop();
    for (const line of lines) {
      if (!line.startsWith("data:")) continue;
      const data = line.slice(5).trim();
      if (data === "[DONE]") return;
      yield JSON.parse(data);
    }
  }
}

/** The text as elements: code fences become blocks, `code` and **bold** are marked, everything else stays text. */
function rendered(text) {
  const fragment = document.createDocumentFragment();
  text.split(/^[ \t]*```/m).forEach((part, at) => {
    if (at % 2) {
      const [, language, code] = /^([^\n]*)\n?([\s\S]*)$/.exec(part);
      const block = element("pre", "", element("code", code.replace(/\n$/, "")));
      if (language.trim()) block.dataset.language = language.trim();
      fragment.append(block);
    } else {
      for (const paragraph of part.split(/\n{2,}/)) {
        const lines = paragraph.replace(/^\s*\n|\s+$/g, "");
        if (lines) fragment.append(element("p", "", ...marked(lines)));
      }
    }
  });
  return fragment;
}

function marked(text) {
  return text
    .replace(/^#{1,6} +(.*)$/gm, "**$1**")
    .split(/(`[^`\n]+`|\*\*[^*\n]+\*\*)/)
    .filter(Boolean)
    .map((piece) => {
      if (/^`[^`\n]+`$/.test(piece)) return element("code", piece.slice(1, -1));
      if (/^\*\*[^*\n]+\*\*$/.test(piece)) return element("strong", piece.slice(2, -2));
      return piece;
    });
}

function element(name, text = "", ...children) {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  made.append(...children);
  return made;
}
