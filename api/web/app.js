// The page's one straight line: a question goes out, its answer comes in, sentence by sentence.
import { Exchange } from "./answer.js";
import { refresh, setCurrent } from "./conversations.js";
import { announce, byId, h, plural } from "./dom.js";
import { learn, openFilters, readFilters, writeFilters } from "./filters.js";
import { API, events, get, post, Trouble } from "./server.js";
import { closeSource, openSource } from "./source.js";
import { onAdded, openUpload } from "./upload.js";

const LOOK_AGAIN = 2_000;
let conversation = null;
let running = null;
let opened = 0;

/** Asks in the open conversation, or begins one. */
async function ask(question, filters) {
  if (running) return;
  running = new AbortController();
  const { signal } = running;
  const exchange = new Exchange(question, { edit, learn });
  byId("welcome").hidden = true;
  byId("thread").append(exchange.element);
  exchange.element.scrollIntoView({ block: "start" });
  busy(true);
  try {
    conversation ??= await begin(signal);
    const path = `${API}/conversations/${encodeURIComponent(conversation)}/messages`;
    for await (const [name, data] of events(path, { question, filters }, signal)) show(exchange, name, data);
    refresh().catch(() => {});
  } catch (error) {
    if (signal.aborted) exchange.stopped();
    else exchange.failed(asTrouble(error), () => again(exchange, question, filters));
  } finally {
    if (running?.signal === signal) {
      running = null;
      busy(false);
    }
  }
}

async function begin(signal) {
  const { conversation_id: id } = await post(`${API}/conversations`, {});
  if (signal.aborted) throw new Trouble("Stopped.");
  history.replaceState(null, "", `#c/${encodeURIComponent(id)}`);
  setCurrent(id);
  return id;
}

function show(exchange, name, data) {
  if (name === "papers") exchange.found(data);
  if (name === "sentence") {
    exchange.add(data.sentence, data.new_citations);
    announce(data.sentence.text.replace(/\s*\[\d+\]/g, "").trim());
  }
  if (name === "answer") {
    exchange.done(data);
    announce(`The answer is complete, with ${plural(data.citations.length, "footnote")}.`);
  }
}

/** A fault of the page itself is said, too, and stays visible to whoever mends it. */
function asTrouble(error) {
  if (error instanceof Trouble) return error;
  console.error(error);
  return new Trouble(`The page met a fault: ${error.message}`);
}

function again(exchange, question, filters) {
  exchange.element.remove();
  ask(question, filters);
}

function edit(question, filters) {
  byId("question").value = question;
  writeFilters(filters);
  openFilters();
}

function busy(now) {
  byId("send").hidden = now;
  byId("stop").hidden = !now;
}

/** Opens what the address names: a conversation, or a new one. */
async function open() {
  const id = /^#c\/(.+)$/.exec(location.hash)?.[1];
  const mine = ++opened;
  running?.abort();
  running = null;
  busy(false);
  closeSource();
  toggleMenu(false);
  conversation = id ? decodeURIComponent(id) : null;
  setCurrent(conversation);
  byId("thread").replaceChildren();
  byId("welcome").hidden = Boolean(id);
  document.title = "Footnote";
  if (!id) return;
  try {
    await load(conversation, () => mine === opened);
  } catch (error) {
    conversation = null;
    byId("thread").replaceChildren(h("p", { class: "trouble", role: "alert" }, error.message));
  }
}

async function load(id, wanted) {
  const { title, messages } = await get(`${API}/conversations/${encodeURIComponent(id)}`);
  const answers = messages.filter((one) => one.answer_id);
  const kept = await Promise.all(answers.map((one) => get(`${API}/answers/${encodeURIComponent(one.answer_id)}`)));
  if (!wanted()) return;
  document.title = `${title} – Footnote`;
  byId("thread").replaceChildren(...kept.map((answer) => whole(answer).element));
  byId("thread").focus({ preventScroll: true });
  byId("thread").lastElementChild?.scrollIntoView({ block: "start" });
}

function whole(answer) {
  const exchange = new Exchange(answer.question, { edit, learn });
  exchange.found(answer);
  for (const sentence of answer.sentences) {
    exchange.add(sentence, answer.citations.filter((one) => sentence.markers.includes(one.marker) && !exchange.citations.has(one.marker)));
  }
  exchange.done(answer, { stale: answer.stale });
  return exchange;
}

/** How many papers there are, and what to do when there are none or the server is not ready. */
async function shelf() {
  const response = await fetch("/readyz").catch(() => null);
  const body = await response?.json().catch(() => null);
  if (!response?.ok) {
    byId("state").replaceChildren(h("p", { class: "notice" }, body?.detail ?? "The server cannot be reached.", " Looking again every few seconds."));
    setTimeout(shelf, LOOK_AGAIN);
    return;
  }
  byId("shelf").textContent = plural(body.papers, "paper");
  byId("state").replaceChildren(...(body.papers ? [] : [emptyShelf()]));
}

function emptyShelf() {
  return h(
    "div",
    { class: "notice" },
    h("p", {}, h("strong", {}, "The library is empty. ")),
    h("p", {}, "Add papers here (any list with abstracts: BibTeX, RIS, CSV, JSON, PubMed, arXiv), or on the command line:"),
    h("pre", {}, h("code", {}, "footnote ingest FILE_OR_FOLDER")),
    h("p", {}, h("button", { type: "button", class: "main", onclick: openUpload }, "Add papers")),
  );
}

/** `/?paper=…` leads to an abstract: other programs cite a paper this way that has no address of its own. */
async function openPaper() {
  const name = new URLSearchParams(location.search).get("paper");
  if (!name) return;
  try {
    const paper = await get(`${API}/papers/${name.split("/").map(encodeURIComponent).join("/")}`);
    openSource({ title: "Paper", papers: [{ marker: null, paper, quotes: [] }] }, null);
  } catch (error) {
    byId("thread").replaceChildren(h("p", { class: "trouble", role: "alert" }, error.message));
  }
}

/** Names for the filters to suggest, from the first papers on the shelf. */
async function suggest() {
  const page = await get(`${API}/papers?limit=100`).catch(() => ({ papers: [] }));
  learn(page.papers);
}

function toggleMenu(open) {
  byId("menu").setAttribute("aria-expanded", String(open));
  document.body.classList.toggle("menu-open", open);
}

function submit() {
  const question = byId("question").value.trim();
  if (!question || running) return;
  const filters = readFilters();
  byId("question").value = "";
  byId("filters").open = false;
  if (matchMedia("(pointer: coarse)").matches) byId("question").blur(); // else a phone's keyboard covers the answer
  ask(question, filters);
}

byId("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  submit();
});
byId("question").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  submit();
});
byId("filters").addEventListener("toggle", suggest, { once: true });
byId("stop").addEventListener("click", () => {
  running?.abort();
  byId("question").focus();
});
byId("menu").addEventListener("click", () => toggleMenu(!document.body.classList.contains("menu-open")));
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !document.body.classList.contains("menu-open")) return;
  toggleMenu(false);
  byId("menu").focus();
});
byId("add").addEventListener("click", openUpload);
onAdded(shelf);
addEventListener("hashchange", open);
for (const link of document.querySelectorAll('a[href="#"]')) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    history.pushState(null, "", location.pathname);
    open().then(() => byId("question").focus());
  });
}

await Promise.all([shelf(), open(), openPaper(), refresh().catch((error) => announce(error.message))]);
if (!location.hash && !location.search && matchMedia("(min-width: 60rem)").matches) byId("question").focus();
