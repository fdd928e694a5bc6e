// Back to where one was: how far a feed or a list of people was loaded and which entries were looked at stand in the history's entry of the
// page, so that going back and loading again find them, also where the browser has kept no page.
"use strict";

(() => {
  const PAUSE = 150; // milliseconds without scrolling
  const PATIENCE = 20_000; // milliseconds that one more page may take
  const BEYOND = 60; // cards that may have come since, where the last one is gone
  const HEAD = 80; // pixels that the head of the page covers
  const NOTED = 5; // cards by which the place is found, should the first be gone

  const ENTRY = "#feed > article[id], #people > li[id]";
  if (!document.querySelector("#feed, #people")) return;

  const reader = document.body.dataset.reader || null; // another user of the tab begins at the top

  // The feed is another one when it was asked for again.
  const cards = () => Array.from(document.querySelectorAll(ENTRY)).filter((card) => !card.matches(".leaving"));
  let timer = null;
  let isComing = false; // on the way back

  function note(opened) {
    clearTimeout(timer);
    timer = null;
    if (isComing) return;
    const all = cards();
    const seen = all.filter((card) => card.getBoundingClientRect().bottom > HEAD).slice(0, NOTED);
    const place = {
      seen: scrollY > 0 ? seen.map((card) => [card.id, card.getBoundingClientRect().top]) : [],
      last: all.at(-1)?.id,
      count: all.length,
      opened: opened || null,
      reader,
    };
    history.replaceState({ ...history.state, place }, "");
  }

  document.addEventListener("scroll", () => {
    clearTimeout(timer);
    timer = setTimeout(note, PAUSE);
  }, { passive: true });
  // As a page is left, its entry is the one that is left: it is noted before.
  document.addEventListener("click", ({ target }) => {
    if (target.closest("a, button, article")) note(target.closest(ENTRY)?.id);
  }, { capture: true });
  document.body.addEventListener("htmx:afterSettle", () => timer ?? (timer = setTimeout(note, PAUSE)));

  const isThere = (id) => Boolean(document.getElementById(id));

  // The next page, unless there is none or it does not come.
  async function load() {
    const more = document.getElementById("more");
    const way = more?.querySelector("[data-more]");
    if (!way) return false;
    if (!way.matches(".htmx-request")) {
      if (way.matches("form")) htmx.trigger(way, "submit");
      else htmx.ajax("GET", way.href, { source: way, target: "#more", swap: "outerHTML" }).catch(() => {});
    }
    const until = Date.now() + PATIENCE;
    while (document.getElementById("more") === more) {
      if (Date.now() > until) return false;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return true;
  }

  // True if the page is long enough to be there.
  function goTo(seen) {
    const known = seen.find(([id]) => isThere(id));
    if (!known) return false;
    const off = () => document.getElementById(known[0]).getBoundingClientRect().top - known[1];
    scrollBy({ top: off(), behavior: "instant" });
    return Math.abs(off()) < 1;
  }

  async function comeBack({ seen, last, count, opened }) {
    isComing = true;
    let isPlaced = false;
    const stay = () => (isPlaced = true); // a reader who scrolls meanwhile stays there
    for (const kind of ["wheel", "touchmove", "keydown"]) addEventListener(kind, stay, { once: true, passive: true });
    const place = () => {
      if (isPlaced) return;
      if (isThere(seen[0][0])) isPlaced = goTo(seen);
    };
    place();
    while (last && !isThere(last) && cards().length < count + BEYOND && (await load())) place();
    if (!isPlaced) goTo(seen);
    if (opened && document.activeElement === document.body) {
      const card = document.getElementById(opened);
      (card?.matches("li") ? card.querySelector("a") : card)?.focus({ preventScroll: true });
    }
    isComing = false;
    note();
  }

  function begin() {
    const place = history.state?.place;
    if (place?.seen.length && place.reader === reader) comeBack(place);
  }

  history.scrollRestoration = "manual";
  begin();
  // A page that the browser kept whole. WebKit begins it at its top.
  addEventListener("pageshow", ({ persisted }) => persisted && begin());
})();
