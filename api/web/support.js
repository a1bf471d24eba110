// Does the cited text bear a sentence out? Said in words and by bars of which more or fewer are full, never by colour alone.
import { h } from "./dom.js";

const SUPPORT = {
  ok: { bars: 3, short: "", long: "The quoted words bear this sentence out." },
  weak: { bars: 2, short: "weak support", counted: "with weak support", long: "The quoted words bear this sentence out only weakly." },
  mismatch: { bars: 1, short: "source may not say this", counted: "whose source may not say it", long: "The cited abstract does not seem to say this." },
  number_mismatch: { bars: 1, short: "number not in source", counted: "with a number that is not in its source", long: "A number in this sentence is not in the cited abstract." },
  uncited: { bars: 0, short: "no source", counted: "without a source", long: "This sentence cites no paper." },
};

const of = (sentence) => SUPPORT[sentence.support] ?? SUPPORT.uncited;

function bars(full) {
  return h("span", { class: "bars", "aria-hidden": "true" }, ...[1, 2, 3].map((n) => h("i", n <= full ? { class: "full" } : {})));
}

/** The button after a sentence: how well it is supported, and more on pressing it. */
export function supportButton(sentence, onclick) {
  const { bars: full, short, long } = of(sentence);
  return h(
    "button",
    { type: "button", class: `support ${sentence.support}`, "aria-label": `${long} Show the check.`, title: long, "aria-expanded": "false", onclick },
    bars(full),
    short ? h("span", { class: "word" }, short) : null,
  );
}

/** The same for the panel, with the reason. */
export function supportLine(sentence) {
  const { bars: full, long } = of(sentence);
  const text = sentence.text.replace(/\s*\[\d+\]/g, "").replace(/^\s*[-*•]\s/, "").trim();
  return [
    h("p", { class: "claim" }, text),
    h("p", {}, bars(full), ` ${long}`),
    sentence.reason ? h("p", { class: "small" }, `Because: ${sentence.reason}.`.replace(/\.+$/, ".")) : null,
    h("p", { class: "small" }, "A check by words and meaning: it may miss a “not”. Read the marked words."),
  ].filter(Boolean);
}

/** One line for a whole answer. */
export function supportSummary(sentences) {
  const counted = sentences.filter((one) => one.support !== "ok");
  if (!sentences.length) return null;
  if (!counted.length) return sentences.length === 1 ? "The quoted words bear the sentence out." : `The quoted words bear out all ${sentences.length} sentences.`;
  const named = Object.entries(SUPPORT)
    .map(([name, { counted: how }]) => [how, counted.filter((one) => one.support === name).length])
    .filter(([, count]) => count)
    .map(([how, count]) => `${count} ${how}`);
  return `${sentences.length - counted.length} of ${sentences.length} sentences borne out by the quoted words; ${named.join(", ")}.`;
}
