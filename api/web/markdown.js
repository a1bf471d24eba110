// An answer as Markdown with footnotes, as GitHub, Obsidian and Pandoc read them.
import { webAddress } from "./dom.js";
import { authors } from "./source.js";

export function asMarkdown(answer) {
  const body = answer.sentences.map(sentenceText).join("");
  const notes = answer.citations.map(note).join("\n");
  return `**${plain(answer.question)}**\n\n${body}\n${notes ? `\n${notes}\n` : ""}`;
}

function sentenceText({ text, markers, support, reason }) {
  const body = text.trimEnd();
  const parts = body.split(/\s*\[(\d+)\]/);
  const written = parts.map((part, place) => (place % 2 === 0 ? plain(part) : markers.includes(Number(part)) ? `[^${part}]` : `\\[${part}\\]`));
  const doubt = ["ok", "weak"].includes(support) || !reason ? "" : ` *(⚠ ${plain(reason)})*`;
  return written.join("") + doubt + text.slice(body.length);
}

function note({ marker, paper, quote }) {
  const url = webAddress(paper.url) ?? (paper.doi && webAddress(`https://doi.org/${paper.doi}`));
  const named = [authors(paper, 6), paper.title, [paper.venue, paper.year].filter(Boolean).join(", ")].filter(Boolean).map((part) => `${plain(part).replace(/\.$/, "")}. `).join("");
  return `[^${marker}]: ${named}“${plain(quote).replace(/\s+/g, " ")}”${url ? ` <${url}>` : ""}`;
}

/** Text that Markdown leaves as it is; formulas keep their signs. */
function plain(text) {
  return text
    .split(/(\$[^$\n]+\$)/)
    .map((part, place) => (place % 2 ? part : part.replace(/[\\`*_<>[\]|~]/g, "\\$&")))
    .join("");
}
