// What a page can do beyond plain HTML: keys, and the reader's zone of time. Everything works without it.
"use strict";

(() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const is_typing = (element) => element.matches("input, textarea, select, [contenteditable]");

  // ── the zone of time: told once, so that the server writes times as the reader lives them ──
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const told = document.cookie.split("; ").find((one) => one.startsWith("catchment_zone="));
  if (zone && told !== `catchment_zone=${encodeURIComponent(zone)}`) {
    document.cookie = `catchment_zone=${encodeURIComponent(zone)}; path=/; max-age=31536000; samesite=lax`;
  }

  // ── what is shown only where it can work ──
  for (const one of all("[data-shows]")) {
    one.hidden = false;
    one.addEventListener("click", () => document.getElementById(one.dataset.shows).showModal());
  }

  for (const one of all("[data-reads]")) {
    one.hidden = false;
    one.querySelector("input").addEventListener("change", async (event) => {
      const [file] = event.target.files;
      if (file) document.getElementById(one.dataset.reads).value = await file.text();
    });
  }

  // ── what is running: told as it changes, as long as somebody looks ──
  const place = document.querySelector("[data-live]");
  let stream = null;
  let renewed = Date.now();
  let is_waiting = false;

  const entry = (one) => {
    const [line, link, words] = ["li", "a", "span"].map((name) => document.createElement(name));
    line.className = `is-${one.tone}`;
    link.href = one.href;
    link.textContent = one.name;
    words.textContent = one.words;
    line.append(link, " ", words);
    return line;
  };

  // Parts of the page are taken from a fresh one, except where somebody is at work.
  const renew = async () => {
    is_waiting = false;
    renewed = Date.now();
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok || document.hidden) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const old of all("[data-renew]")) {
      const part = fresh.getElementById(old.id);
      if (part && !old.contains(document.activeElement) && !old.matches(":hover")) old.replaceWith(part);
    }
  };

  const renew_soon = () => {
    if (is_waiting) return;
    is_waiting = true;
    setTimeout(() => renew().catch(() => {}), Math.max(0, renewed + document.body.dataset.renews * 1000 - Date.now()));
  };

  const tell = (told) => {
    place.querySelector("[data-said]").textContent = told.said;
    for (const part of ["visits", "results"]) {
      place.querySelector(`[data-${part}]`).replaceChildren(...told[part].map(entry));
    }
    renew_soon();
  };

  // A page that nobody sees lets go: a browser has few connections to one server.
  const listen = () => {
    if (document.hidden) {
      stream?.close();
      stream = null;
    } else if (!stream) {
      stream = new EventSource(place.dataset.live);
      stream.onmessage = (event) => tell(JSON.parse(event.data));
    }
  };

  if (place) {
    listen();
    document.addEventListener("visibilitychange", listen);
  }

  // ── keys ──
  const links = () => all("[data-list] [data-row] a.headline");
  let is_going = false;

  const move = (step) => {
    const many = links();
    const at = many.findIndex((one) => one.closest("[data-row]").contains(document.activeElement));
    const next = many[at < 0 ? (step > 0 ? 0 : many.length - 1) : at + step];
    if (next) {
      next.focus({ preventScroll: true });
      next.closest("[data-row]").scrollIntoView({ block: "nearest" });
    }
  };

  const original = () => {
    const row = document.activeElement.closest("[data-row]") || document;
    const link = row.querySelector("[data-original]");
    if (link) window.open(link.dataset.original, "_blank", "noopener,noreferrer");
  };

  const go = (key) => {
    const place = document.querySelector(`[data-go="${CSS.escape(key)}"]`);
    if (place) location.assign(place.href);
    return Boolean(place);
  };

  const deeds = {
    j: () => move(1),
    k: () => move(-1),
    o: original,
    n: () => document.querySelector("[data-next]")?.click(),
    "/": () => document.getElementById("find")?.focus(),
    "?": () => document.getElementById("keys")?.showModal(),
    g: () => {
      is_going = true;
      setTimeout(() => { is_going = false; }, 1500);
    },
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (is_typing(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (document.querySelector("dialog[open]")) return;
    if (is_going) {
      is_going = false;
      if (go(event.key)) event.preventDefault();
      return;
    }
    const deed = deeds[event.key];
    if (deed) {
      event.preventDefault();
      deed();
    }
  });
})();
