// Keeps a page up to date without losing the reader's place. Every page works without it.
"use strict";

const html = document.documentElement;
const live = ["main", "#as-of"]; // what a newer version of the page replaces
const loaded = new WeakMap(); // section -> the ETag of its content
let shown = ""; // the ETag of the shown version
let asked = 0; // an answer that a newer one has overtaken is dropped

async function read(url) {
  // The browser sends the ETag that it knows: what has not changed is not sent again.
  const answer = await fetch(url, { cache: "no-cache", credentials: "same-origin" });
  if (!answer.ok) throw new Error(String(answer.status));
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  return { page, etag: answer.headers.get("ETag"), url: answer.url };
}

// Makes `old` like `fresh` and touches only what differs: focus, scroll, selection and open details stay.
function update(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) return old.replaceWith(fresh);
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return undefined;
  }
  if (loaded.has(old.parentElement) && old.matches(".body")) return undefined; // it has an ETag of its own
  for (const { name } of [...old.attributes])
    if (!fresh.hasAttribute(name) && !(name === "open" && old.matches("details"))) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes)
    if (old.getAttribute(name) !== value && name !== "open") old.setAttribute(name, value);
  if (old !== document.activeElement) children(old, fresh);
  return undefined;
}

const key = (node) =>
  node.id || (/^(TR|LI)$/.test(node.nodeName) && node.querySelector("a")?.getAttribute("href")) || "";

function children(old, fresh) {
  const known = new Map([...old.childNodes].filter(key).map((node) => [key(node), node]));
  let place = old.firstChild;
  for (const node of [...fresh.childNodes]) {
    const name = key(node);
    const same = name ? known.get(name) : place && !key(place) && place.nodeName === node.nodeName ? place : null;
    if (!same) {
      old.insertBefore(node, place);
    } else {
      if (same === place) place = place.nextSibling;
      else old.insertBefore(same, place);
      known.delete(name);
      update(same, node);
    }
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

async function refresh(url = location.href) {
  const note = document.getElementById("update");
  const number = ++asked;
  try {
    const { page, etag } = await read(url);
    if (number !== asked) return;
    if (etag !== shown) {
      const focused = document.activeElement;
      for (const place of live) {
        const [old, fresh] = [document.querySelector(place), page.querySelector(place)];
        if (old && fresh) update(old, fresh);
      }
      if (focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
      document.title = page.title;
      shown = etag;
    }
    note.hidden = true;
  } catch {
    if (note.hidden) note.textContent = `The monitor has not answered as it should since ${new Date().toISOString().slice(11, 16)} UTC: this page may be out of date.`;
    note.hidden = false;
  }
  for (const section of document.querySelectorAll("details[data-src][open]")) load(section);
}

// The content of a section is fetched when it is opened, and again with the page.
async function load(section) {
  const body = section.querySelector(".body");
  try {
    const { page, etag, url } = await read(section.dataset.src);
    const content = page.getElementById("section");
    if (!content || loaded.get(section) === etag) return;
    for (const link of content.querySelectorAll("a[href]"))
      link.setAttribute("href", new URL(link.getAttribute("href"), url).href);
    const fresh = body.cloneNode(false);
    fresh.append(...content.childNodes);
    children(body, fresh);
    loaded.set(section, etag);
  } catch {
    // The link to the section stays.
  }
}

document.addEventListener(
  "toggle",
  ({ target }) => { if (target.open && target.matches("details[data-src]")) load(target); },
  true,
);

function openNamed() {
  let id = location.hash.slice(1);
  try {
    id = decodeURIComponent(id);
  } catch {
    // An address may end in any text, also in a lone `%`.
  }
  const named = document.getElementById(id);
  if (named?.matches("details")) named.open = true;
}
addEventListener("hashchange", openNamed);
openNamed();

const form = document.querySelector("form.search");
if (form) {
  let timer;
  const search = () => {
    const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value)).toString();
    history.replaceState(null, "", query ? `?${query}` : location.pathname);
    refresh();
  };
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(search, 200);
  };
  form.addEventListener("input", soon);
  form.addEventListener("change", soon); // some browsers say nothing else of a chosen option
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(timer);
    search();
  });
}

const seconds = Number(html.dataset.refresh);
if (seconds) {
  setInterval(() => { if (!document.hidden) refresh(); }, seconds * 1000);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
}
