// What a question is narrowed to: years, venues, areas, authors.
import { byId, h } from "./dom.js";

const FIELDS = { venues: "Venue", categories: "Area", authors: "Author" };
const values = { venues: [], categories: [], authors: [] };
const learned = { venues: new Set(), categories: new Set(), authors: new Set() };
const MOST_LEARNED = 200;

/** The filters in the form, in the shape the API takes; what still stands in a box counts. */
export function readFilters() {
  for (const field of Object.keys(FIELDS)) take(field);
  const filters = {};
  for (const [name, box] of [["year_min", "year-min"], ["year_max", "year-max"]]) {
    if (byId(box).value !== "") filters[name] = Number(byId(box).value);
  }
  for (const field of Object.keys(FIELDS)) if (values[field].length) filters[field] = [...values[field]];
  return filters;
}

/** Puts filters into the form. */
export function writeFilters(filters) {
  byId("year-min").value = filters.year_min ?? "";
  byId("year-max").value = filters.year_max ?? "";
  for (const field of Object.keys(FIELDS)) {
    values[field] = [...(filters[field] ?? [])];
    byId(`${field}-box`).value = "";
    draw(field);
  }
  tell();
}

/** Opens the form's filters, ready to type. */
export function openFilters() {
  byId("filters").open = true;
  byId("year-min").focus();
}

/** `from 2020, in ICML`; empty without filters. */
export function describe({ year_min: from, year_max: to, venues = [], categories = [], authors = [], paper_ids: ids = [] }) {
  const years = from && from === to ? `of ${from}` : [from && `from ${from}`, to && `up to ${to}`].filter(Boolean).join(" ");
  const any = (list) => list.join(" or ");
  return [
    years,
    venues.length && `in ${any(venues)}`,
    categories.length && `on ${any(categories)}`,
    authors.length && `by ${any(authors)}`,
    ids.length && `spoken of before (${ids.length})`,
  ].filter(Boolean).join(", ");
}

/** Names to suggest, from papers that were met. */
export function learn(papers) {
  const add = (field, name) => name && learned[field].size < MOST_LEARNED && learned[field].add(name);
  for (const paper of papers) {
    add("venues", paper.venue);
    add("categories", paper.category);
    for (const author of paper.authors.slice(0, 5)) add("authors", author);
  }
  for (const field of Object.keys(FIELDS)) {
    byId(`${field}-known`).replaceChildren(...[...learned[field]].map((name) => h("option", { value: name })));
  }
}

function take(field) {
  const box = byId(`${field}-box`);
  const name = box.value.trim();
  box.value = "";
  if (name && !values[field].includes(name)) values[field].push(name);
  draw(field);
  tell();
}

function draw(field) {
  const chip = (name) => h("li", {}, h("button", { type: "button", class: "chip", "aria-label": `Remove ${FIELDS[field]} ${name}`, onclick: () => drop(field, name) }, `${name} `, h("span", { "aria-hidden": "true" }, "×")));
  byId(`${field}-chips`).replaceChildren(...values[field].map(chip));
}

function drop(field, name) {
  values[field] = values[field].filter((one) => one !== name);
  draw(field);
  tell();
  byId(`${field}-box`).focus();
}

function tell() {
  const years = { year_min: byId("year-min").value, year_max: byId("year-max").value };
  const said = describe({ ...years, ...values });
  byId("filters-said").textContent = said ? `: ${said}` : "";
}

function build(field) {
  const onkeydown = (event) => {
    if (event.key !== "Enter" || event.isComposing || !event.currentTarget.value.trim()) return;
    event.preventDefault();
    take(field);
  };
  byId(field).append(
    h("label", { for: `${field}-box` }, FIELDS[field]),
    h("input", { id: `${field}-box`, type: "text", list: `${field}-known`, maxlength: "500", autocomplete: "off", onkeydown, onchange: () => take(field) }),
    h("datalist", { id: `${field}-known` }),
    h("ul", { id: `${field}-chips`, class: "chips", "aria-label": `${FIELDS[field]}: chosen` }),
  );
}

for (const field of Object.keys(FIELDS)) build(field);
for (const box of ["year-min", "year-max"]) byId(box).addEventListener("input", tell);
byId("clear").addEventListener("click", () => writeFilters({}));
