// Live sessions in open pages: countdowns that tick, and cards that change in their places. Everything works without.
"use strict";

(() => {
  const FINE = 600; // below so many seconds they are counted
  const DAY = 86_400; // what is further away is not counted down
  const SHOWN = 150; // cards that are asked about

  const words = document.getElementById("ticking").dataset;

  // --- Time
  function filled(word, minutes, seconds) {
    const hours = word.includes("{h}") ? Math.floor(minutes / 60) : 0;
    return word.replace("{h}", hours).replace("{m}", minutes - 60 * hours).replace("{s}", seconds);
  }

  function until(seconds) {
    if (seconds <= 0) return words.soon;
    const minutes = Math.floor(seconds / 60);
    if (seconds < 60) return filled(words.untilSeconds, minutes, seconds);
    if (seconds < FINE) return filled(words.untilMinutesSeconds, minutes, seconds % 60);
    return filled(seconds < 3600 ? words.untilMinutes : words.untilHours, minutes);
  }

  function since(seconds) {
    if (seconds < 60) return words.begun;
    return filled(seconds < 3600 ? words.sinceMinutes : words.sinceHours, Math.floor(seconds / 60));
  }

  function tick() {
    if (document.hidden) return;
    for (const time of document.querySelectorAll("[data-tick]")) {
      const away = Math.ceil((Date.parse(time.dateTime) - Date.now()) / 1000);
      if (away >= DAY) continue;
      const text = time.dataset.tick === "until" ? until(away) : since(-away);
      if (time.textContent !== text) time.textContent = text;
    }
  }

  setInterval(tick, 1000);
  document.addEventListener("visibilitychange", tick);
  document.body.addEventListener("htmx:afterSwap", tick);
  tick();

  // --- What changed elsewhere: by the stream, or as the page asks now and then (_news.html)
  function cards() {
    return Array.from(document.querySelectorAll("[data-session]:not(.leaving)"));
  }

  function renew(id, version) {
    const card = document.getElementById(`session-${id}`);
    if (!card || card.matches(".leaving") || Number(card.dataset.version) >= version) return;
    if (version < Infinity) htmx.trigger(card, "changed");
    else remove(card);
  }

  document.body.addEventListener("live", ({ detail }) => {
    const version = detail.state === "gone" ? Infinity : detail.version;
    renew(detail.id, version);
  });
  document.body.addEventListener("sessions", ({ detail }) => {
    for (const card of cards()) {
      const version = detail[card.dataset.session];
      if (version !== undefined) renew(card.dataset.session, version || Infinity);
    }
  });

  document.body.addEventListener("htmx:configRequest", ({ detail }) => {
    if (detail.elt.id !== "live-news") return;
    const open = cards().filter(({ dataset }) => ["upcoming", "live"].includes(dataset.state)).slice(0, SHOWN);
    detail.parameters.has = open.map(({ dataset }) => `${dataset.session}:${dataset.version}`).join(",");
  });

  // The session is hidden from the reader by now: its card goes.
  document.body.addEventListener("htmx:responseError", ({ detail }) => {
    if (detail.elt.matches("[data-session]") && detail.xhr.status === 404) remove(detail.elt);
  });

  function remove(card) {
    if (card.matches(".look-whole")) {
      say(toast.dataset.gone);
      return;
    }
    if (card.contains(document.activeElement)) {
      const neighbour = card.nextElementSibling || card.previousElementSibling;
      if (neighbour) neighbour.focus({ preventScroll: true });
    }
    card.classList.add("leaving");
    setTimeout(() => card.remove(), 300);
  }
})();
