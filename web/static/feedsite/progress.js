// A thin bar at the top while a page or an answer is waited for, where that takes longer than a moment.
"use strict";

(() => {
  const MOMENT = 150; // milliseconds
  const LONGEST = 20_000; // a file that is saved leaves the page where it is

  const bar = document.getElementById("progress");
  const waiting = new Set(); // requests, and the way to another page
  let timer = null;

  function begin(what) {
    waiting.add(what);
    timer ??= setTimeout(() => (bar.hidden = false), MOMENT);
  }

  function end(what) {
    waiting.delete(what);
    if (waiting.size) return;
    clearTimeout(timer);
    timer = null;
    bar.hidden = true;
  }

  function leave() {
    begin("page");
    setTimeout(() => end("page"), LONGEST);
  }

  // Last of all, when it is known that nothing else is done with it.
  window.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    const isPlain = !event.defaultPrevented && !event.button && !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);
    if (!link || !isPlain || link.target || link.origin !== location.origin || link.hasAttribute("download")) return;
    const isHere = link.pathname === location.pathname && link.search === location.search && link.hash;
    if (!isHere) leave();
  });
  window.addEventListener("submit", (event) => {
    if (!event.defaultPrevented && event.target.method !== "dialog") leave();
  });
  window.addEventListener("pageshow", () => end("page"));
  window.addEventListener("pagehide", () => end("page"));

  document.body.addEventListener("htmx:beforeSend", ({ detail }) => {
    if (!isPoll(detail.elt)) begin(detail.xhr);
  });
  for (const event of ["htmx:afterRequest", "htmx:beforeOnLoad", "htmx:sendError", "htmx:sendAbort", "htmx:timeout"]) {
    document.body.addEventListener(event, ({ detail }) => end(detail.xhr));
  }
})();
