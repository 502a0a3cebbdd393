// What a page can do beyond plain HTML: keys, and the reader's zone of time. Everything works without it.
"use strict";

(() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const is_typing = (element) => element.matches("input, textarea, select, [contenteditable]");

  // ── the time zone: sent once as a cookie, so that the server shows times in the user's zone ──
  const zone = encodeURIComponent(Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC");
  const zone_cookie = () => document.cookie.split("; ").find((cookie) => cookie.startsWith("catchment_zone="))?.split("=")[1];
  const zone_before = zone_cookie();
  if (zone_before !== zone) document.cookie = `catchment_zone=${zone}; path=/; max-age=31536000; samesite=lax`;

  const page_anew = async () => {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    return answer.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
  };

  // The very first page was written before its reader's zone was known: it is taken anew, unless they are at work on it.
  const correct = async () => {
    const fresh = (await page_anew())?.querySelector("main");
    const main = document.querySelector("main");
    if (fresh && !main.contains(document.activeElement)) main.replaceWith(fresh);
    reveal();
  };
  if (!zone_before && zone !== "UTC" && zone_cookie() === zone) correct().catch(() => {});

  // ── what is shown only where it can work ──
  const reveal = () => all("[data-shows], [data-reads]").forEach((element) => { element.hidden = false; });
  reveal();

  document.addEventListener("click", (event) => {
    const shows = event.target.closest("[data-shows]");
    if (shows) document.getElementById(shows.dataset.shows).showModal();
  });

  document.addEventListener("change", async (event) => {
    const reads = event.target.closest("[data-reads]");
    const file = reads && event.target.files[0];
    if (file) document.getElementById(reads.dataset.reads).value = await file.text();
  });

  // ── live activity: updated by server-sent events while the page is visible ──
  const place = () => document.querySelector("[data-live]");
  let stream = null;
  let renewed = Date.now();
  let is_waiting = false;

  const entry = (visit) => {
    const [line, link, words] = ["li", "a", "span"].map((name) => document.createElement(name));
    line.className = `is-${visit.tone}`;
    link.href = visit.href;
    link.textContent = visit.name;
    words.textContent = visit.words;
    line.append(link, " ", words);
    return line;
  };

  // Parts of the page are taken from a fresh one, except where somebody is at work.
  const renew = async () => {
    is_waiting = false;
    renewed = Date.now();
    const fresh = await page_anew();
    if (!fresh || document.hidden) return;
    for (const old of all("[data-renew]")) {
      const part = fresh.getElementById(old.id);
      if (part && !old.contains(document.activeElement) && !old.matches(":hover")) old.replaceWith(part);
    }
  };

  // A page that shows a collection under way is renewed until that is over; for five minutes at most.
  const await_end = async () => {
    for (let looks = 0; looks < 200 && document.querySelector("[data-awaits]"); looks += 1) {
      await new Promise((go) => { setTimeout(go, 1500); });
      await renew().catch(() => {});
    }
  };
  await_end();

  const renew_soon = () => {
    if (is_waiting) return;
    is_waiting = true;
    setTimeout(() => renew().catch(() => {}), Math.max(0, renewed + document.body.dataset.renews * 1000 - Date.now()));
  };

  const update_live = (activity) => {
    place().querySelector("[data-said]").textContent = activity.said;
    for (const part of ["visits", "results"]) {
      place().querySelector(`[data-${part}]`).replaceChildren(...activity[part].map(entry));
    }
    renew_soon();
  };

  // A page that nobody sees lets go: a browser has few connections to one server.
  const listen = () => {
    if (document.hidden) {
      stream?.close();
      stream = null;
    } else if (!stream) {
      stream = new EventSource(place().dataset.live);
      stream.onmessage = (event) => update_live(JSON.parse(event.data));
    }
  };

  if (place()) {
    listen();
    document.addEventListener("visibilitychange", listen);
  }

  // ── keys ──
  const links = () => all("[data-list] [data-row] a.headline");
  let is_going = false;

  const move = (step) => {
    const headlines = links();
    const at = headlines.findIndex((link) => link.closest("[data-row]").contains(document.activeElement));
    const next = headlines[at < 0 ? (step > 0 ? 0 : headlines.length - 1) : at + step];
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

  const actions = {
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
    const action = actions[event.key];
    if (action) {
      event.preventDefault();
      action();
    }
  });
})();
