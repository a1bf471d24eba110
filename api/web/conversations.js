// The list of past conversations: open one, delete one.
import { areYouSure } from "./dialogs.js";
import { announce, byId, h } from "./dom.js";
import { API, get, request } from "./server.js";

let cursor = null;
let current = null;

/** Fetches the newest conversations and shows them. */
export async function refresh() {
  const page = await get(`${API}/conversations`);
  byId("conversation-list").replaceChildren();
  show(page);
}

/** Marks the conversation that is open. */
export function setCurrent(id) {
  current = id;
  for (const link of byId("conversation-list").querySelectorAll("a")) mark(link);
}

function mark(link) {
  if (link.dataset.id === current) link.setAttribute("aria-current", "page");
  else link.removeAttribute("aria-current");
}

function show(page) {
  cursor = page.cursor;
  byId("more").hidden = cursor === null;
  byId("conversation-list").append(...page.conversations.filter((one) => one.messages > 0).map(item));
}

function item({ conversation_id: id, title, updated }) {
  const name = title || "Untitled";
  const link = h("a", { href: `#c/${encodeURIComponent(id)}`, "data-id": id }, h("span", { class: "title", dir: "auto" }, name), h("span", { class: "when" }, when(updated)));
  mark(link);
  const remove = h("button", { type: "button", class: "quiet delete", "aria-label": `Delete ${name}`, title: "Delete", onclick: () => drop(id, name, row) }, "×");
  const row = h("li", {}, link, remove);
  return row;
}

function when(time) {
  const date = new Date(time);
  const today = new Date().toDateString() === date.toDateString();
  return today ? date.toLocaleTimeString("en", { hour: "2-digit", minute: "2-digit", hour12: false }) : date.toLocaleDateString("en", { day: "numeric", month: "short", year: "numeric" });
}

async function drop(id, name, row) {
  if (!(await areYouSure(`“${name}” and its answers will be gone.`))) return;
  try {
    await request(`${API}/conversations/${encodeURIComponent(id)}`, { method: "DELETE" });
  } catch (error) {
    if (error.status !== 404) {
      announce(error.message);
      row.append(h("p", { class: "small" }, error.message));
      return;
    }
  }
  row.remove();
  announce("Deleted.");
  if (id === current) location.hash = "";
  byId("conversations").querySelector(".new").focus();
}

byId("more").addEventListener("click", async () => {
  try {
    show(await get(`${API}/conversations?cursor=${encodeURIComponent(cursor)}`));
  } catch (error) {
    announce(error.message);
  }
});
