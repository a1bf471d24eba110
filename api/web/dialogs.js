// The three things the page asks a person for before it goes on.
import { byId } from "./dom.js";

/** Shows a dialog; whether it ended with its main button. Focus goes back to where it was, as browsers do by themselves. */
function ask(dialog) {
  dialog.returnValue = "cancel";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "ok"), { once: true });
  });
}

/** The key somebody typed, or null. */
export async function askForKey(title, why) {
  byId("key-title").textContent = title;
  byId("key-why").textContent = why;
  byId("key").value = "";
  const given = await ask(byId("key-dialog"));
  const key = byId("key").value.trim();
  byId("key").value = "";
  return given && key ? key : null;
}

/** Whether somebody wants what cannot be undone. */
export function areYouSure(what) {
  byId("sure-what").textContent = what;
  return ask(byId("sure-dialog"));
}

/** Copies; where the browser refuses (a page not served over HTTPS), shows the text to be copied by hand. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    byId("text").value = text;
    const done = ask(byId("text-dialog"));
    byId("text").select();
    await done;
    return false;
  }
}
