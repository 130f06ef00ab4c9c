"use strict";
// One item at a time: it is shown, timed while the page is seen, and sent with the rater's choice.
// The server answers with the next item once the choice is on its disk.

const at = (id) => document.getElementById(id);
const TEXTS = ["prompt", "reference", "first", "second"];
let rater = "";
let item = null; // what is shown
let unsent = null; // a choice that the server has not confirmed
let busy = false;
let differs = false;
let plain = false;
let marked = null; // both responses with their differences
let seen = 0; // milliseconds for which the item was seen before `since`
let since = null;

// Time

function looking() {
  return seen + (since === null ? 0 : performance.now() - since);
}
function watch() {
  seen = looking();
  since = document.visibilityState === "visible" ? performance.now() : null;
}
document.addEventListener("visibilitychange", watch);

// Requests

async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  };
  let answer;
  try {
    answer = await fetch(path, { ...options, cache: "no-store", signal: leaving.signal });
  } catch {
    throw new Error("The server does not answer. Is btdagg label still running?");
  }
  if (answer.ok) {
    return answer.json();
  }
  const said = await answer.text();
  if (answer.status === 403) {
    throw new Error("The server was started anew. Open the address that it printed; what was kept "
      + "is there.");
  }
  let detail = said;
  try {
    detail = JSON.parse(said).detail;
  } catch { /* it is plain text */ }
  throw new Error(detail || `The server answered with status ${answer.status}.`);
}

let retry = null;
let leaving = new AbortController(); // who leaves waits for no answer
async function attempt(work) {
  if (busy || (unsent && work !== send)) { // nothing takes the place of a choice
    return;
  }
  busy = true;
  document.body.setAttribute("aria-busy", "true");
  const { signal } = leaving;
  try {
    await work();
    settle();
  } catch (error) {
    if (signal.aborted) {
      return;
    }
    retry = () => attempt(work);
    at("why").textContent = unsent ? `Not kept yet. ${error.message}` : error.message;
    at("trouble").hidden = false;
    at("again").focus();
  } finally {
    busy = false;
    document.body.removeAttribute("aria-busy");
  }
}
at("again").addEventListener("click", () => retry && retry());
function settle() {
  at("trouble").hidden = true;
  retry = null;
}

const address = (path, key) => {
  const asked = new URLSearchParams({ rater });
  if (key) {
    asked.set("key", key);
  }
  return `${path}?${asked}`;
};

function go(key) {
  return attempt(async () => show(await ask(address("/item", key))));
}

function choose(choice) {
  if (!item || item.done || busy) {
    return;
  }
  unsent = {
    rater: item.rater, // whose sides were shown
    key: item.key,
    choice,
    seconds: item.seconds + looking() / 1000,
    note: at("note").value,
  };
  press(choice);
  attempt(send);
}

async function send() {
  const next = await ask("/label", unsent);
  unsent = null;
  show(next, "Kept. ");
}

// What is shown

function press(choice) {
  for (const button of document.querySelectorAll("#choices button")) {
    button.setAttribute("aria-pressed", String(button.dataset.choice === choice));
  }
}

function duration(seconds) {
  if (seconds < 90) {
    return `${Math.round(seconds)} s`;
  }
  const minutes = Math.round(seconds / 60);
  return minutes < 90 ? `${minutes} min` : `${(minutes / 60).toFixed(1)} h`;
}

function progress() {
  const { n_items: all, n_answered: answered, n_skipped: skipped } = item;
  at("bar").max = Math.max(all, 1);
  at("bar").value = answered;
  let said = `${answered} of ${all} done`;
  if (skipped) {
    said += `, ${skipped} skipped`;
  }
  if (item.seconds_per_item !== null) {
    said += ` · ${duration(item.seconds_per_item)} a pair`;
    if (answered < all) {
      said += ` · ${duration(item.seconds_per_item * (all - answered))} to go`;
    }
  }
  at("count").textContent = said;
  at("progress").hidden = false;
  at("who").hidden = false;
  at("name").textContent = item.rater;
}

function show(found, before = "") {
  item = found;
  marked = null;
  differs = false;
  at("differ").setAttribute("aria-pressed", "false");
  at("start").hidden = true;
  at("work").hidden = item.done;
  at("done").hidden = !item.done;
  progress();
  if (item.done) {
    finish(before);
    return;
  }
  for (const name of ["prompt", "reference"]) {
    at(`${name}-part`).hidden = !item[name].markdown;
  }
  texts();
  press(item.answer);
  at("note").value = item.note;
  note(Boolean(item.note));
  at("back").disabled = !item.previous;
  at("on").hidden = !item.answer;
  at("place").textContent = `Pair ${item.place} of ${item.n_items}`
    + (item.answer ? ` · you chose ${words(item.answer)}` : "");
  for (const name of TEXTS) {
    at(name).scrollTop = 0;
  }
  window.scrollTo(0, 0);
  at("place").focus({ preventScroll: true });
  at("status").textContent = `${before}${at("place").textContent}`;
  seen = 0;
  since = null;
  watch();
}

const words = (choice) => ({
  first: "response 1", tie: "a tie", second: "response 2", skip: "to skip it",
})[choice];

// The server has made the HTML: escaped, without links, images or attributes. The policy of the
// page runs nothing in it.
function texts() {
  for (const name of TEXTS) {
    const { markdown, plain: source } = item[name];
    at(name).innerHTML = differs && marked && marked[name]
      ? marked[name] : plain && source !== null ? source : markdown;
  }
  at("source").setAttribute("aria-pressed", String(plain));
}

function difference() {
  if (!item || item.done) {
    return;
  }
  if (marked) {
    differs = !differs;
    at("differ").setAttribute("aria-pressed", String(differs));
    texts();
    return;
  }
  const of = item;
  attempt(async () => {
    const found = await ask(address("/differences", of.key));
    if (item === of) {
      marked = found;
      difference();
    }
  });
}

function note(open) {
  at("note-part").hidden = !open;
  at("note-button").setAttribute("aria-expanded", String(open));
}

function finish(before) {
  const rows = item.lines.map((line) => {
    const row = document.createElement("li");
    row.textContent = line;
    return row;
  });
  at("lines").replaceChildren(...rows);
  at("disputes").hidden = !item.disputed.length;
  at("disputes-note").textContent = item.n_disputed > item.disputed.length
    ? `The first ${item.disputed.length} of ${item.n_disputed}, those that are furthest apart first.`
    : "Those that are furthest apart first.";
  at("disputed").replaceChildren(...item.disputed.map(disputed));
  at("review").disabled = !item.previous;
  window.scrollTo(0, 0);
  at("done-title").focus({ preventScroll: true });
  at("status").textContent = `${before}All pairs are done.`;
}

function disputed(one) {
  const row = document.createElement("tr");
  const place = document.createElement("th");
  place.scope = "row";
  place.textContent = one.place;
  const said = document.createElement("td");
  said.textContent = Object.entries(one.labels).map(([who, label]) => `${who}: ${label}`).join(", ");
  const look = document.createElement("td");
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet";
  button.textContent = `Show pair ${one.place}`;
  button.addEventListener("click", () => go(one.key));
  look.append(button);
  row.append(place, said, look);
  return row;
}

// Who labels; another tab may be another rater

function recall(name) {
  try {
    if (name !== undefined) {
      sessionStorage.setItem("rater", name);
    }
    return sessionStorage.getItem("rater") || "";
  } catch {
    return "";
  }
}

at("start").addEventListener("submit", (event) => {
  event.preventDefault();
  if (busy) {
    return;
  }
  rater = at("rater").value;
  attempt(async () => {
    const found = await ask(address("/item"));
    rater = found.rater;
    recall(rater);
    show(found);
  });
});

function greet() {
  item = null;
  for (const id of ["work", "done", "progress", "who"]) {
    at(id).hidden = true;
  }
  at("start").hidden = false;
  at("rater").focus();
  at("rater").select();
}
at("leave").addEventListener("click", () => {
  if (unsent && !window.confirm("Your last choice is not kept yet. Leave it?")) {
    return;
  }
  leaving.abort();
  leaving = new AbortController();
  unsent = null;
  settle();
  recall("");
  greet();
});

// Buttons, keys and scrolling

for (const button of document.querySelectorAll("#choices button")) {
  button.addEventListener("click", () => choose(button.dataset.choice));
}
const back = () => item && item.previous && go(item.previous);
const on = () => item && item.answer && go(item.next);
function open() {
  note(at("note-part").hidden);
  (at("note-part").hidden ? at("place") : at("note")).focus();
}
function source() {
  plain = !plain;
  texts();
}
at("back").addEventListener("click", back);
at("review").addEventListener("click", back);
at("on").addEventListener("click", on);
at("note-button").addEventListener("click", open);
at("differ").addEventListener("click", difference);
at("source").addEventListener("click", source);
at("note").addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    at("place").focus();
  }
});

const KEYS = {
  1: () => choose("first"), 2: () => choose("second"), t: () => choose("tie"),
  s: () => choose("skip"), z: back, x: on, d: difference, m: source, n: open,
};
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input:not([type=checkbox]), textarea");
  const pressed = event.ctrlKey || event.metaKey || event.altKey || event.repeat;
  if (!item || typing || pressed || !at("keys").checked || !at("trouble").hidden) {
    return;
  }
  const work = KEYS[event.key.toLowerCase()];
  if (work && (!item.done || event.key.toLowerCase() === "z")) {
    event.preventDefault();
    work();
  }
});

let led = null; // the side that is scrolled by hand; the other follows it
function follow(event) {
  const from = event.target;
  const to = from.id === "first" ? at("second") : at("first");
  if (!at("together").checked || led === from) {
    led = null;
    return;
  }
  const way = from.scrollHeight - from.clientHeight;
  const top = way > 0 ? from.scrollTop / way * (to.scrollHeight - to.clientHeight) : 0;
  if (Math.abs(to.scrollTop - top) >= 1) {
    led = to;
    to.scrollTop = top;
  }
}
at("first").addEventListener("scroll", follow);
at("second").addEventListener("scroll", follow);

window.addEventListener("beforeunload", (event) => {
  if (unsent) {
    event.preventDefault();
  }
});

rater = recall();
if (rater) {
  go();
} else {
  greet();
}
