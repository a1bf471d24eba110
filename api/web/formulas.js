// Formulas: the server turns TeX into MathML, the page puts it in place, the browser draws it.
import { API, post } from "./server.js";

const MATHML = "http://www.w3.org/1998/Math/MathML";
const AT_ONCE = 8;
const known = new Map();
let waiting = [];

/** The formulas of a text as [{start, end, mathml}], in code points. Empty where the server cannot tell: the source is shown. */
export function formulasOf(text) {
  if (!text.includes("$")) return Promise.resolve([]);
  if (!known.has(text)) {
    known.set(text, new Promise((resolve) => waiting.push({ text, resolve })));
    if (waiting.length === 1) queueMicrotask(fetchWaiting);
  }
  return known.get(text);
}

async function fetchWaiting() {
  const all = waiting;
  waiting = [];
  for (let at = 0; at < all.length; at += AT_ONCE) {
    const some = all.slice(at, at + AT_ONCE);
    const found = await post(`${API}/formulas`, { texts: some.map((one) => one.text) }).catch(() => null);
    some.forEach(({ text, resolve }, place) => {
      if (found === null) known.delete(text);
      resolve(found === null ? [] : found.texts[place]);
    });
  }
}

/** A MathML element, made anew: nothing of any other namespace and no attribute that acts gets through. */
export function drawn({ mathml }, source) {
  const root = new DOMParser().parseFromString(mathml, "application/xml").documentElement;
  const made = copied(root);
  made.setAttribute("alttext", source.replaceAll("$", ""));
  return made;
}

function copied(node) {
  if (node.nodeType === Node.TEXT_NODE) return document.createTextNode(node.data);
  if (node.namespaceURI !== MATHML) return document.createTextNode(node.textContent);
  const made = document.createElementNS(MATHML, node.localName);
  for (const { name, value } of node.attributes) {
    if (!/^(xmlns|on.*|href|style|class|id)$/i.test(name)) made.setAttribute(name, value);
  }
  made.append(...[...node.childNodes].map(copied));
  return made;
}

/** Code points `start` to `end` of a text as nodes, formulas drawn. */
export function pieces(points, formulas, start, end) {
  const nodes = [];
  let at = start;
  for (const formula of formulas) {
    if (formula.start < at || formula.end > end) continue;
    nodes.push(points.slice(at, formula.start).join(""));
    nodes.push(drawn(formula, points.slice(formula.start, formula.end).join("")));
    at = formula.end;
  }
  nodes.push(points.slice(at, end).join(""));
  return nodes;
}

/** Puts a text into an element: at once as it is, then with its formulas drawn. */
export function write(element, text) {
  element.textContent = text;
  if (text.includes("$")) {
    formulasOf(text).then((formulas) => {
      const points = Array.from(text);
      if (formulas.length) element.replaceChildren(...pieces(points, formulas, 0, points.length));
    });
  }
  return element;
}
