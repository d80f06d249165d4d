"use strict";

const talk = document.getElementById("talk");
const form = document.getElementById("form");
const question = document.getElementById("question");
const ground = document.getElementById("ground");
const send = document.getElementById("send");
const clear = document.getElementById("clear");
const examples = document.getElementById("examples");
const words = JSON.parse(talk.dataset.words);

let messages = [];
let running = null;

form.addEventListener("submit", (submitted) => {
  submitted.preventDefault();
  if (running) running.abort();
  else if (question.value.trim()) ask(question.value.trim());
});

question.addEventListener("keydown", (pressed) => {
  // While an input method is composing, Enter chooses a character.
  if (pressed.key !== "Enter" || pressed.shiftKey || pressed.isComposing) return;
  pressed.preventDefault();
  if (!running) form.requestSubmit();
});

examples.addEventListener("click", (clicked) => {
  if (clicked.target.tagName === "BUTTON" && !running) ask(clicked.target.textContent);
});

clear.addEventListener("click", () => {
  running?.abort();
  messages = [];
  talk.replaceChildren();
  clear.hidden = true;
  examples.hidden = false;
  question.focus();
});

async function ask(text) {
  question.value = "";
  examples.hidden = true;
  clear.hidden = false;
  const asked = element("article", "", element("h3", words.you), element("p", text));
  asked.className = "asked";
  const answer = new Answer();
  talk.append(asked, answer.article);
  const conversation = messages;
  conversation.push({ role: "user", content: text });
  running = new AbortController();
  const own = running;
  send.textContent = words.stop;
  try {
    await stream(conversation, own.signal, answer);
  } catch (error) {
    answer.end(own.signal.aborted ? words.stopped : error.told || words.broken);
  }
  if (answer.text) conversation.push({ role: "assistant", content: answer.text });
  else conversation.pop();
  if (running === own) {
    running = null;
    send.textContent = words.send;
  }
}

async function stream(conversation, signal, answer) {
  const response = await fetch("/v1/chat/completions", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({
      model: talk.dataset.model,
      messages: conversation,
      stream: true,
      casemate: { ground: Boolean(ground?.checked) },
    }),
    signal,
  });
  if (!response.ok) throw told((await response.json()).error.message);
  for await (const chunk of events(response.body)) {
    if (chunk.error) throw told(chunk.error.message);
    answer.take(chunk);
  }
  answer.end("");
}

function told(message) {
  return Object.assign(new Error(message), { told: `${words.failed}: ${message}` });
}

/** One answer on the page: thought, text, a line about how it ended, and what it cites. */
class Answer {
  text = "";
  #thought = "";
  #finish = "";
  #drawing = false;

  constructor() {
    this.body = element("div", "", element("p", words.working));
    this.body.className = "working";
    this.thinking = element("details", "", element("summary", words.thinking), element("p"));
    this.thinking.hidden = true;
    this.article = element("article", "", element("h3", talk.dataset.model), this.thinking, this.body);
    this.article.setAttribute("aria-busy", "true");
  }

  take(chunk) {
    const choice = chunk.choices?.[0];
    this.text += choice?.delta?.content ?? "";
    this.#thought += choice?.delta?.reasoning ?? "";
    this.#finish = choice?.finish_reason ?? this.#finish;
    if (chunk.casemate?.citations) this.#cite(chunk.casemate.citations);
    if (this.#drawing) return;
    this.#drawing = true; // many chunks, one drawing
    requestAnimationFrame(() => this.#draw());
  }

  end(line) {
    this.#draw();
    this.article.removeAttribute("aria-busy");
    const how = line || (this.#finish === "length" ? words.cut : "");
    if (!this.text) this.body.replaceChildren();
    if (how) this.article.append(Object.assign(element("p", how), { className: "ending" }));
  }

  #draw() {
    this.#drawing = false;
    this.thinking.hidden = !this.#thought;
    this.thinking.lastChild.textContent = this.#thought;
    if (!this.text) return;
    const follow = innerHeight + scrollY > document.body.scrollHeight - 40;
    this.body.className = "";
    this.body.replaceChildren(rendered(this.text));
    if (follow) this.article.scrollIntoView({ block: "nearest" });
  }

  #cite(citations) {
    const groups = [
      [words.citations, citations.filter((one) => one.cited)],
      [words.offered, citations.filter((one) => !one.cited)],
    ];
    const list = element("div");
    list.className = "citations";
    if (!groups[0][1].length) list.append(element("p", words.none_cited));
    for (const [title, group] of groups) {
      if (group.length) list.append(element("h4", title), element("ul", "", ...group.map(citation)));
    }
    this.article.append(list);
  }
}

function citation(one) {
  const right = one.grade === "H0";
  const id = element("span", one.id);
  id.className = "id";
  const grade = element("span", right ? words.checked : `${words.unchecked} (${one.grade})`);
  grade.className = right ? "grade right" : "grade wrong";
  const source = element("span", [one.source, one.version].filter(Boolean).join(" "));
  source.className = "soft";
  return element("li", "", id, ` ${one.name} `, source, " ", ...(one.cited ? [grade] : []));
}
