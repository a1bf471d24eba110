// Elements, made without HTML: whatever a paper or a model says arrives on the page as text.

/** An element. Properties named `on…` are listeners, `null` and `false` leave one out; children are nodes or text. */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const byId = (id) => document.getElementById(id);

/** Tells screen readers, and nobody else. It goes away again, so that nobody comes across it when reading the page. */
export function announce(text) {
  const said = h("p", {}, text);
  byId("live").append(said);
  setTimeout(() => said.remove(), 20_000);
}

/** A web address, or null: `javascript:` and the like come from papers too. */
export function webAddress(url) {
  try {
    const { protocol, href } = new URL(url);
    return ["http:", "https:"].includes(protocol) ? href : null;
  } catch {
    return null;
  }
}

/** A link out, if the address is a web address; else null. */
export function linkOut(url, text) {
  const href = webAddress(url);
  return href && h("a", { href, target: "_blank", rel: "noopener noreferrer" }, text);
}

/** The language of a text where its script tells, for screen readers and fonts. */
export function languageOf(text) {
  if (/[\p{Script=Hiragana}\p{Script=Katakana}]/u.test(text)) return "ja";
  if (/\p{Script=Hangul}/u.test(text)) return "ko";
  return /\p{Script=Han}/u.test(text) ? "zh" : null;
}

export function plural(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/** Offers `blob` as a download. */
export function download(blob, name) {
  const url = URL.createObjectURL(blob);
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
