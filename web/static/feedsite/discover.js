// The Discover page beside htmx: pulling it down, and asking by itself whether there is something new.
// See docs/decisions.md: Shown pages are rows of PostgreSQL.
"use strict";

(() => {
  const PULL = 64; // pixels that the sign has to come
  const SLOP = 10; // what a finger moves that only rests
  const LOOK = 10_000; // how often it is looked at the clock

  const form = document.getElementById("refresh");
  const sign = document.querySelector(".pull");

  // --- Refreshing
  document.body.addEventListener("refreshed", ({ detail }) => {
    askedAt = Date.now();
    say(detail.said);
    // The button that was pressed went with what it stood in, and the focus to the page as a whole (asides.js).
    const first = document.querySelector("#feed > article");
    if (detail.count && ["BODY", "MAIN"].includes(document.activeElement.tagName)) first.focus({ preventScroll: true });
  });

  // The tab that one is on refreshes, as the button does.
  document.querySelector(".tabs [aria-current]").addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    form.requestSubmit();
  });

  // --- By itself. A page without a reader costs nothing: at most one page is fetched, and waits (_fresh.html).
  let askedAt = Date.now();
  const every = 1000 * Number(document.getElementById("discover").dataset.refresh);

  function look() {
    if (!document.hidden && Date.now() >= askedAt + every) htmx.trigger("#fresh", "due");
  }
  document.body.addEventListener("htmx:beforeRequest", ({ detail }) => {
    if (detail.elt.id === "fresh") askedAt = Date.now(); // it is dropped while a page is on its way, and comes later
  });
  setInterval(look, Math.min(every, LOOK));
  document.addEventListener("visibilitychange", look);

  // --- Pulling: what the button does, for fingers. Nothing is prevented, so scrolling and zooming stay the browser's.
  let from = null; // where the finger went down
  let way = 0;

  function draw(pixels) {
    way = pixels;
    sign.style.setProperty("--way", way);
    sign.classList.toggle("far", way >= PULL);
  }

  document.documentElement.style.overscrollBehaviorY = "none"; // the browser's own pulling loads the page again
  document.addEventListener("touchstart", (event) => {
    const begins = event.touches.length === 1 && scrollY <= 0 && !event.target.closest("textarea, .menu, .tabs");
    from = begins ? event.touches[0] : null;
    draw(0);
  }, { passive: true });
  document.addEventListener("touchmove", (event) => {
    if (!from) return;
    const { clientX, clientY } = event.touches[0];
    const down = clientY - from.clientY;
    if (event.touches.length > 1 || scrollY > 0 || (!way && Math.abs(clientX - from.clientX) > Math.abs(down))) {
      from = null;
      draw(0);
    } else draw(Math.min(Math.max(down - SLOP, 0) / 2, 1.4 * PULL));
  }, { passive: true });
  document.addEventListener("touchend", () => {
    if (from && way >= PULL) {
      sign.classList.add("busy");
      form.requestSubmit();
    }
    from = null;
    draw(0);
  });
  document.addEventListener("touchcancel", () => {
    from = null;
    draw(0);
  });
  form.addEventListener("htmx:afterRequest", () => sign.classList.remove("busy"));
})();
