// Requests to this server: the key that goes with them, and what went wrong as one kind of error.
import { askForKey } from "./dialogs.js";

export const API = "/api/v1";

/** What went wrong, in words for people. `status` 0: the server was not reached; `retryAfter` in seconds, if it named any. */
export class Trouble extends Error {
  constructor(detail, { status = 0, code = "", errors = [], retryAfter = null } = {}) {
    super(detail);
    Object.assign(this, { status, code, errors, retryAfter });
  }
}

export const UNREACHABLE = "The server cannot be reached. Is it still running?";

const KEYS = { user: "footnote-key", admin: "footnote-admin-key" };
const asking = {};

/** The key to send. Adding papers may take another key than asking. */
export function authorization(kind) {
  const key = sessionStorage.getItem(KEYS[kind]) ?? sessionStorage.getItem(KEYS.user);
  return key ? { Authorization: `Bearer ${key}` } : {};
}

/** Asks for a key and keeps it until the tab is closed. One dialog at a time, however many requests wait for the key. */
export function newKey(kind, why) {
  asking[kind] ??= askForKey(kind === "admin" ? "An admin key is needed" : "A key is needed", why).then((key) => {
    delete asking[kind];
    if (key === null) return false;
    sessionStorage.setItem(KEYS[kind], key);
    return true;
  });
  return asking[kind];
}

/** Which kind of key would help against this trouble, or null. */
export function keyFor(trouble, kind) {
  if (trouble.status === 401) return kind;
  return trouble.status === 403 && trouble.code === "admin_key_needed" ? "admin" : null;
}

/** A response that is fine; asks for a key and tries again where one is missing. Throws Trouble, or AbortError. */
export async function request(path, { headers = {}, body, ...options } = {}) {
  for (;;) {
    const sent = authorization("user");
    const response = await send(path, {
      ...options,
      headers: { ...sent, ...headers, ...(body ? { "Content-Type": "application/json" } : {}) },
      body: body && JSON.stringify(body),
    });
    if (response.ok) return response;
    const trouble = await troubleOf(response);
    if (!keyFor(trouble, "user") || trouble.status === 403) throw trouble;
    const changed = authorization("user").Authorization !== sent.Authorization;
    const why = sent.Authorization ? trouble.message : "This server answers only with a key; whoever runs it has one for you.";
    if (!changed && !(await newKey("user", why))) throw trouble;
  }
}

async function send(path, options) {
  try {
    return await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Trouble(UNREACHABLE);
  }
}

async function troubleOf(response) {
  return readTrouble(response.status, await response.text(), response.headers.get("Retry-After"));
}

/** An error response as Trouble, whoever wrote it. */
export function readTrouble(status, text, retryAfter) {
  const seconds = retryAfter && /^\d+$/.test(retryAfter) ? Number(retryAfter) : null;
  try {
    return troubleIn(JSON.parse(text), seconds);
  } catch {
    return new Trouble(`The server answered with ${status}.`, { status, retryAfter: seconds });
  }
}

/** A problem+json object as Trouble. */
export function troubleIn(problem, retryAfter = null) {
  const { detail, status, code, errors } = problem;
  return new Trouble(detail ?? "Something went wrong.", { status, code, errors, retryAfter });
}

export async function get(path) {
  return (await request(path)).json();
}

export async function post(path, body) {
  return (await request(path, { method: "POST", body })).json();
}

/** Server-sent events of a request, as [name, data]. Throws Trouble for an `error` event and for a stream that just ends. */
export async function* events(path, body, signal) {
  const response = await request(path, { method: "POST", body, headers: { Accept: "text/event-stream" }, signal });
  for await (const [name, data] of parsed(response.body)) {
    if (name === "error") throw troubleIn(data);
    yield [name, data];
    if (name === "answer") return;
  }
  throw new Trouble("The connection broke off before the answer was complete.");
}

async function* parsed(body) {
  let rest = "";
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read().catch((error) => {
      if (error.name === "AbortError") throw error;
      return { done: true };
    });
    if (done) return;
    const blocks = (rest + value).split(/\r?\n\r?\n/);
    rest = blocks.pop();
    yield* blocks.map(event).filter(([, data]) => data !== null);
  }
}

/** One event's lines. A comment, which only keeps the connection alive, has no data. */
function event(block) {
  const lines = block.split(/\r?\n/);
  const values = (field) => lines.filter((line) => line.startsWith(`${field}:`)).map((line) => line.slice(field.length + 1).replace(/^ /, ""));
  const data = values("data");
  return [values("event")[0] ?? "message", data.length ? JSON.parse(data.join("\n")) : null];
}
