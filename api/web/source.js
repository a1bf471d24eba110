// The panel beside an answer: an abstract with the quoted words marked, and what the check of a sentence found.
import { byId, h, languageOf, linkOut } from "./dom.js";
import { formulasOf, pieces, write } from "./formulas.js";
import { supportLine } from "./support.js";

const MOST_AUTHORS = 12;
let opener = null;

/** Opens the panel on papers as [{marker, paper, quotes}], with the sentence they were cited for. Focus goes there and back. */
export async function openSource({ title, sentence = null, papers }, from) {
  opener?.setAttribute("aria-expanded", "false");
  opener = from;
  opener?.setAttribute("aria-expanded", "true");
  byId("source-title").textContent = title;
  byId("source-body").replaceChildren(...(sentence ? [check(sentence)] : []), ...papers.map(entry));
  const panel = byId("source");
  panel.hidden = false;
  document.body.classList.add("reading");
  panel.scrollTop = 0;
  panel.focus({ preventScroll: true });
  await Promise.all(papers.map(({ paper, quotes }, place) => fill(panel.querySelectorAll(".abstract")[place], paper, quotes)));
  const mark = panel.querySelector("mark");
  if (mark && mark.offsetTop > panel.scrollTop + panel.clientHeight * 0.7) panel.scrollTop = mark.offsetTop - panel.clientHeight / 3;
}

export function closeSource() {
  const panel = byId("source");
  if (panel.hidden) return;
  panel.hidden = true;
  document.body.classList.remove("reading");
  opener?.setAttribute("aria-expanded", "false");
  if (opener?.isConnected) opener.focus();
  opener = null;
}

function check(sentence) {
  return h("section", { class: "check", "aria-label": "The check of this sentence" }, ...supportLine(sentence));
}

function entry({ marker, paper }) {
  const where = [paper.venue, paper.year, paper.category].filter(Boolean).join(" · ");
  const links = [linkOut(paper.url, "Read the paper"), paper.doi && linkOut(`https://doi.org/${paper.doi}`, `DOI ${paper.doi}`)];
  return h(
    "article",
    { class: "paper" },
    h("h3", {}, marker ? h("span", { class: "number" }, `${marker} `) : null, write(h("span"), paper.title ?? paper.cite_as)),
    paper.authors.length ? by(paper) : null,
    where ? h("p", { class: "where" }, where) : null,
    h("p", { class: "abstract", lang: languageOf(paper.abstract), dir: "auto" }, paper.abstract),
    ...links.filter(Boolean).map((link) => h("p", { class: "where" }, link)),
  );
}

/** All authors; of hundreds the first dozen, and the others when asked for. */
function by(paper) {
  const more = paper.authors.length - MOST_AUTHORS;
  if (more < MOST_AUTHORS) return h("p", { class: "by" }, authors(paper));
  const rest = h("details", {}, h("summary", {}, `and ${more} more`), h("p", {}, paper.authors.slice(MOST_AUTHORS).join(", ")));
  return h("div", { class: "by" }, paper.authors.slice(0, MOST_AUTHORS).join(", "), rest);
}

export function authors(paper, most = Infinity) {
  const named = paper.authors.slice(0, most).join(", ");
  return paper.authors_truncated || paper.authors.length > most ? `${named} et al.` : named;
}

async function fill(element, paper, quotes) {
  const points = Array.from(paper.abstract);
  const formulas = await formulasOf(paper.abstract);
  if (element) element.replaceChildren(...marked(points, formulas, quotes));
}

/** An abstract's nodes: quotes in `mark` elements, formulas drawn; a quote that ends inside a formula takes all of it. */
export function marked(points, formulas, quotes) {
  const nodes = [];
  let at = 0;
  for (const { start, end } of joined(quotes.map((quote) => widened(quote, formulas)))) {
    nodes.push(...pieces(points, formulas, at, start), h("mark", {}, ...pieces(points, formulas, start, end)));
    at = end;
  }
  nodes.push(...pieces(points, formulas, at, points.length));
  return nodes;
}

function widened({ start, end }, formulas) {
  const cut = (place) => formulas.find((one) => one.start < place && place < one.end);
  return { start: cut(start)?.start ?? start, end: cut(end)?.end ?? end };
}

function joined(quotes) {
  const found = [];
  for (const { start, end } of quotes.toSorted((a, b) => a.start - b.start)) {
    const last = found.at(-1);
    if (last && start <= last.end) last.end = Math.max(last.end, end);
    else found.push({ start, end });
  }
  return found;
}

byId("source-close").addEventListener("click", closeSource);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !document.querySelector("dialog[open]")) closeSource();
});
