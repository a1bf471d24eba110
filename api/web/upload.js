// Adding papers: files go up with a progress bar, the ingest report comes back.
import { announce, byId, h, plural } from "./dom.js";
import { API, authorization, keyFor, newKey, readTrouble, Trouble, UNREACHABLE } from "./server.js";

const MOST_LISTED = 100;
const MOST_MEGABYTES = 99; // the server takes 100 MiB, the form around the files included, and hangs up beyond
let sending = null;
let sent = false;

/** Opens the dialog; `added` is called after an upload. */
export function openUpload() {
  if (!sending) byId("upload-report").replaceChildren();
  byId("upload-dialog").showModal();
}

export function onAdded(added) {
  byId("upload").addEventListener("submit", async (event) => {
    event.preventDefault();
    byId("upload-send").disabled = true;
    try {
      const report = await upload([...byId("files").files]);
      byId("upload-report").replaceChildren(...reportLines(report));
      byId("files").value = "";
      added();
    } catch (error) {
      byId("upload-report").replaceChildren(...troubleLines(error));
    } finally {
      sending = null;
      if (!byId("upload-dialog").open) announce(byId("upload-report").firstChild.textContent);
      byId("upload-progress").hidden = true;
      byId("upload-send").disabled = false;
    }
  });
}

/** The ingest report. Asks for an admin key and sends again where one is needed. */
async function upload(files) {
  if (files.reduce((sum, file) => sum + file.size, 0) > MOST_MEGABYTES * 2 ** 20) {
    throw new Trouble(`More than ${MOST_MEGABYTES} MB at once: add files in parts, or on the server by \`footnote ingest\`.`);
  }
  for (;;) {
    const kind = "admin";
    const { status, text, retryAfter } = await send(files, authorization(kind));
    if (status === 200) return JSON.parse(text);
    const trouble = readTrouble(status, text, retryAfter);
    if (!keyFor(trouble, kind) || !(await newKey(kind, trouble.message))) throw trouble;
  }
}

/** XMLHttpRequest, since fetch does not tell how much has gone up. */
function send(files, headers) {
  const form = new FormData();
  for (const file of files) form.append("file", file);
  const request = new XMLHttpRequest();
  sending = request;
  sent = false;
  byId("upload-report").replaceChildren();
  byId("upload-progress").hidden = false;
  stage("Sending", 0);
  request.upload.addEventListener("progress", ({ loaded, total }) => stage("Sending", loaded / total));
  request.upload.addEventListener("load", () => {
    sent = true;
    stage("Reading and indexing; many papers take minutes and go on when this is closed", null);
  });
  request.open("POST", `${API}/papers`);
  for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
  return new Promise((resolve, reject) => {
    request.addEventListener("load", () => resolve({ status: request.status, text: request.responseText, retryAfter: request.getResponseHeader("Retry-After") }));
    request.addEventListener("error", () => reject(new Trouble(UNREACHABLE)));
    request.addEventListener("abort", () => reject(new Trouble("Stopped. What the server had already taken stays.")));
    request.send(form);
  });
}

function stage(text, part) {
  byId("upload-stage").textContent = text;
  if (part === null) byId("upload-bar").removeAttribute("value");
  else byId("upload-bar").value = part;
}

function reportLines({ added, merged, unchanged, skipped, rejected, indexed }) {
  const counts = [`${plural(added, "paper")} added`, merged && `${merged} merged with ones known before`, unchanged && `${unchanged} known already`];
  return [
    h("p", { class: "outcome" }, `${counts.filter(Boolean).join(", ")}.`),
    indexed ? null : h("p", { class: "notice" }, "Questions will see them in a moment; the index is catching up."),
    ...list(rejected, "not taken"),
    ...list(skipped, "skipped"),
  ].filter(Boolean);
}

function list(records, what) {
  if (!records.length) return [];
  const lines = records.slice(0, MOST_LISTED).map(({ source, where, reason }) => h("li", {}, h("strong", {}, [source, where].filter(Boolean).join(", ")), `: ${reason.replace(`${source}: `, "")}`));
  if (records.length > MOST_LISTED) lines.push(h("li", {}, `and ${records.length - MOST_LISTED} more`));
  return [h("p", {}, `${plural(records.length, "record")} ${what}:`), h("div", { class: "records", tabindex: "0", role: "group", "aria-label": `Records ${what}` }, h("ul", {}, ...lines))];
}

function troubleLines(error) {
  const lines = (error.errors ?? []).slice(0, MOST_LISTED).map(({ field, message }) => h("li", {}, h("strong", {}, field), `: ${message}`));
  return [h("p", { class: "trouble" }, error.message), lines.length ? h("div", { class: "records", tabindex: "0", role: "group", "aria-label": "Reasons" }, h("ul", {}, ...lines)) : ""];
}

byId("upload-close").addEventListener("click", () => byId("upload-dialog").close());
byId("upload-dialog").addEventListener("close", () => {
  if (!sent) sending?.abort();
});
