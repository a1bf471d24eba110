// A question and its answer on the page: grows sentence by sentence, then gets its footnotes and what can be done with it.
import { copy } from "./dialogs.js";
import { announce, download, h, languageOf, plural } from "./dom.js";
import { describe } from "./filters.js";
import { write } from "./formulas.js";
import { asMarkdown } from "./markdown.js";
import { API, post, request } from "./server.js";
import { authors, openSource } from "./source.js";
import { supportButton, supportSummary } from "./support.js";

const SLOW_AFTER = 8_000;
const FULL_TEXT = "The abstracts do not say; the full text may";
const BULLET = /^\s*[-*•]\s+/;
const NUMBERED = /^\s*\d+[.)]\s/;
const LAST_WORD = /(?:[^\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{P}]{0,20}|.)\p{P}{0,2}$/u;
let made = 0;

export class Exchange {
  /** `edit(question, filters)` takes both back to the form; `papers` of an answer are told to `learn`. */
  constructor(question, { edit, learn }) {
    const id = `exchange-${++made}`;
    this.question = question;
    this.actions = { edit, learn };
    this.sentences = [];
    this.citations = new Map();
    this.status = null;
    this.progress = h("p", { class: "progress" }, "Looking for papers…");
    this.above = h("div", { class: "above" });
    this.text = h("div", { class: "text", dir: "auto" });
    this.notes = h("ol", { class: "footnotes", "aria-label": "Footnotes", hidden: true });
    this.below = h("div", { class: "below" });
    this.element = h(
      "article",
      { class: "exchange", "aria-labelledby": id },
      h("h2", { id, class: "question", tabindex: "-1", lang: languageOf(question), dir: "auto" }, question),
      this.above,
      this.text,
      this.progress,
      this.notes,
      this.below,
    );
    this.element.setAttribute("aria-busy", "true");
    this.waitSlowly();
  }

  /** What was retrieved; the status is decided. */
  found({ status, filters, papers }) {
    this.status = status;
    this.actions.learn(papers.map(({ paper }) => paper));
    if (status === "needs_full_text") this.above.append(h("p", { class: "status" }, FULL_TEXT));
    const said = describe(filters);
    if (said) this.above.append(this.echo(said, filters));
    this.progress.textContent = papers.length ? `Reading ${plural(papers.length, "paper")}…` : "No paper passes.";
    this.waitSlowly();
  }

  echo(said, filters) {
    const edit = h("button", { type: "button", class: "quiet", onclick: () => this.actions.edit(this.question, filters) }, "Edit filters");
    return h("p", { class: "echo" }, `Only papers ${said}. `, edit);
  }

  /** A checked sentence, with the citations that appear in it for the first time. */
  add(sentence, newCitations) {
    this.sentences.push(sentence);
    for (const citation of newCitations) if (!this.citations.has(citation.marker)) this.cite(citation);
    this.text.append(...this.written(sentence));
    if (!this.text.lang) this.text.lang = languageOf(sentence.text) ?? "";
    this.waitSlowly();
  }

  written(sentence) {
    const body = sentence.text.trimEnd();
    const kind = BULLET.test(body) ? "bullet" : NUMBERED.test(body) ? "numbered" : null;
    const line = h("span", { class: ["sentence", sentence.support, kind && `item ${kind}`].filter(Boolean).join(" ") });
    let glue = null;
    for (const part of partsOf(body.replace(BULLET, ""), sentence.markers)) {
      if (typeof part === "number") {
        glue ??= glued(line);
        glue.append(this.marker(part, sentence));
      } else {
        glue = null;
        line.append(...emphasised(part));
      }
    }
    if (this.status !== "not_in_corpus") {
      const button = supportButton(sentence, (event) => this.openCheck(sentence, event.currentTarget));
      (sentence.support === "ok" ? glue ?? line : line).append(button);
    }
    const space = sentence.text.slice(body.length);
    const paragraph = /\n\s*\n/.test(space);
    return [line, paragraph ? h("span", { class: "gap" }) : kind ? "" : space];
  }

  marker(marker, sentence) {
    const name = this.citations.get(marker)?.paper.cite_as ?? "";
    const onclick = (event) => this.openMarker(marker, sentence, event.currentTarget);
    return h("sup", {}, h("button", { type: "button", class: "marker", "aria-label": `Footnote ${marker}: ${name}`, "aria-expanded": "false", onclick }, `${marker}`));
  }

  cite(citation) {
    const { marker, paper, quote } = citation;
    this.citations.set(marker, citation);
    const open = h("button", { type: "button", class: "quiet", "aria-label": `Abstract of footnote ${marker}`, "aria-expanded": "false" }, "Abstract");
    open.addEventListener("click", () => this.openMarker(marker, null, open));
    this.notes.hidden = false;
    this.notes.append(
      h(
        "li",
        {},
        h("span", { class: "number", "aria-hidden": "true" }, `${marker}`),
        h(
          "p",
          {},
          ...reference(paper),
          h("q", { lang: languageOf(quote) }, write(h("span"), quote)),
          " ",
          open,
        ),
      ),
    );
  }

  openMarker(marker, sentence, from) {
    const { paper } = this.citations.get(marker);
    const quotes = (sentence ? [sentence] : this.sentences).flatMap((one) => one.evidence.filter((piece) => piece.marker === marker));
    openSource({ title: `Footnote ${marker}`, papers: [{ marker, paper, quotes }] }, from);
  }

  openCheck(sentence, from) {
    const papers = sentence.markers.map((marker) => ({
      marker,
      paper: this.citations.get(marker).paper,
      quotes: sentence.evidence.filter((piece) => piece.marker === marker),
    }));
    openSource({ title: "Support", sentence, papers }, from);
  }

  /** The whole answer is here. `stale`: a paper it cites has changed or gone since. */
  done(answer, { stale = false } = {}) {
    this.end();
    if (stale) this.above.append(h("p", { class: "notice" }, "A paper cited here has changed or gone since; ask again for an answer of today."));
    if (answer.notice) this.above.append(h("p", { class: "notice" }, answer.notice));
    const said = answer.status === "not_in_corpus" ? null : supportSummary(answer.sentences);
    if (said) this.below.append(h("p", { class: "summary" }, said));
    if (said) this.below.append(h("p", { class: "summary" }, origin(answer)));
    this.below.append(this.tools(answer), ...this.others(answer));
  }

  tools(answer) {
    const button = (text, onclick, more = {}) => h("button", { type: "button", onclick, ...more }, text);
    const copied = async (event) => {
      if (await copy(asMarkdown(answer))) this.say(event.target, "Copied");
    };
    const bibtex = (event) => this.tried(event.target, async () => {
      const response = await request(`${API}/answers/${encodeURIComponent(answer.answer_id)}.bib`);
      download(await response.blob(), `answer-${answer.answer_id}.bib`);
    });
    return h(
      "div",
      { class: "tools" },
      button("Copy as Markdown", copied),
      answer.citations.length ? button("BibTeX", bibtex, { "aria-label": "BibTeX of this answer" }) : null,
      ...this.thumbs(answer.answer_id),
      h("p", { class: "said", role: "status" }),
    );
  }

  thumbs(answerId) {
    const comment = h("input", { type: "text", maxlength: "4000", "aria-label": "A comment on this answer", placeholder: "Why? (optional)" });
    const form = h("form", { class: "comment", hidden: true }, comment, h("button", { type: "submit" }, "Send"));
    let verdict = null;
    const rate = (from) => this.tried(from, async () => {
      await post(`${API}/feedback`, { answer_id: answerId, verdict, comment: comment.value });
      this.say(from, "Thank you, kept.");
    });
    const thumb = (value, text) => h(
      "button",
      {
        type: "button",
        class: `thumb ${value}`,
        "aria-pressed": "false",
        onclick: (event) => {
          verdict = value;
          for (const one of [up, down]) one.setAttribute("aria-pressed", String(one === event.currentTarget));
          form.hidden = false;
          rate(event.currentTarget);
        },
      },
      text,
    );
    const up = thumb("up", "Helpful");
    const down = thumb("down", "Not helpful");
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (await rate(form)) form.hidden = true;
    });
    return [up, down, form];
  }

  say(near, text) {
    near.closest(".tools").querySelector(".said").textContent = text;
  }

  /** Runs what may fail; says so beside the button. Whether it went well. */
  async tried(near, work) {
    try {
      await work();
      return true;
    } catch (error) {
      this.say(near, error.message);
      return false;
    }
  }

  others(answer) {
    const cited = new Set(answer.citations.map(({ paper }) => paper.paper_id));
    const left = answer.papers.filter(({ paper }) => !cited.has(paper.paper_id));
    if (!left.length) return [];
    const nearest = answer.status === "not_in_corpus";
    const summary = nearest ? "The nearest papers" : `${plural(left.length, "more paper")} found`;
    return [h("details", { class: "others", open: nearest }, h("summary", {}, summary), h("ul", {}, ...left.map(({ paper }) => this.other(paper))))];
  }

  other(paper) {
    const open = h("button", { type: "button", class: "quiet title", "aria-expanded": "false" }, write(h("span"), paper.title ?? firstWords(paper.abstract)));
    open.addEventListener("click", () => openSource({ title: "Paper", papers: [{ marker: null, paper, quotes: [] }] }, open));
    return h("li", {}, open, h("span", { class: "small" }, ` ${paper.cite_as}`));
  }

  /** Nobody waits any more. What is shown was checked, so it stays. */
  stopped() {
    this.end();
    this.below.append(h("p", { class: "notice" }, "Stopped; this answer is not kept."));
  }

  /** It failed; `again` asks once more, when the server says so at the earliest. */
  failed(trouble, again) {
    this.end();
    const retry = h("button", { type: "button", onclick: () => again() }, "Ask again");
    const wait = h("span", { class: "small" });
    const details = (trouble.errors ?? []).map((one) => h("li", {}, `${one.field}: ${one.message}`));
    const title = trouble.status === 429 ? "Too many questions at once" : this.sentences.length ? "The answer broke off" : "No answer";
    this.below.append(
      h("div", { class: "trouble" }, h("div", { role: "alert" }, h("p", {}, h("strong", {}, `${title}. `), trouble.message), details.length > 1 ? h("ul", {}, ...details) : null), h("p", {}, retry, " ", wait)),
    );
    if (trouble.retryAfter) countDown(trouble.retryAfter, retry, wait);
  }

  end() {
    clearTimeout(this.timer);
    this.progress.remove();
    this.element.removeAttribute("aria-busy");
  }

  /** After some seconds without anything new, says that it is still going on. */
  waitSlowly() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.progress.textContent = "Still working; a language model may take a minute. Stop ends it.";
      announce("Still working.");
    }, SLOW_AFTER);
  }
}

/** Who, what, where: each ends with one full stop. */
function reference(paper) {
  const where = [paper.venue, paper.year].filter(Boolean).join(", ");
  const stopped = (text) => text && (/[.?!。]$/.test(text) ? `${text} ` : `${text}. `);
  return [stopped(authors(paper, 6)), paper.title && h("cite", {}, write(h("span"), stopped(paper.title))), stopped(where)].filter(Boolean);
}

/** A sentence as texts and markers; as in print, a marker stands behind the full stop or comma that follows it. */
function partsOf(body, markers) {
  const parts = [];
  let at = 0;
  const run = /((?:\s*\[\d+\])+)([.,;:!?。，；：！？]?)/g;
  for (const { 0: whole, 1: marked, 2: stop, index } of body.matchAll(run)) {
    const numbers = [...marked.matchAll(/\d+/g)].map(Number);
    if (!numbers.every((marker) => markers.includes(marker))) continue;
    parts.push(body.slice(at, index) + stop, ...numbers);
    at = index + whole.length;
  }
  return [...parts, body.slice(at)].filter((part) => part !== "");
}

/** A text as elements: models write `**words**` though they are asked not to. */
function emphasised(text) {
  const parts = text.split(/\*\*([^*\n]+)\*\*/);
  return parts.map((part, place) => part && write(h(place % 2 ? "strong" : "span"), part)).filter(Boolean);
}

/** A piece at the end of a line's text that never breaks, holding its last word, for the markers that belong to it. */
function glued(line) {
  const before = line.lastChild;
  const word = before && !before.textContent.includes("$") ? LAST_WORD.exec(before.textContent)[0] : "";
  if (word) before.textContent = before.textContent.slice(0, -word.length);
  const glue = h("span", { class: "glue" }, h(before?.localName ?? "span", {}, word));
  line.append(glue);
  return glue;
}

function countDown(seconds, button, said) {
  const ready = Date.now() + seconds * 1000;
  button.disabled = true;
  const tick = () => {
    const left = Math.ceil((ready - Date.now()) / 1000);
    said.textContent = left > 0 ? `possible in ${left} s` : "";
    button.disabled = left > 0;
    if (left > 0) setTimeout(tick, 250);
  };
  tick();
}

function origin({ generator, timings_ms: timings }) {
  const who = generator === "extractive" ? "Sentences chosen from the abstracts; no language model wrote this" : `Written by ${generator}`;
  return timings?.total === undefined ? `${who}.` : `${who}, ${Math.max(0.1, timings.total / 1000).toFixed(1)} s.`;
}

function firstWords(text) {
  const points = Array.from(text);
  return points.length > 90 ? `${points.slice(0, 89).join("").replace(/\s+\S{0,20}$/, "")}…` : text;
}
