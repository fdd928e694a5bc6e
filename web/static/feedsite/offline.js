// The page without a connection (worker.js): says whether the network or the site is away, and goes on by itself.
"use strict";

(() => {
  if (location.pathname === document.querySelector("main").dataset.address) return; // opened itself: nothing to go on with
  const EVERY = 5_000; // milliseconds
  const AWAY = [502, 503, 504]; // of a proxy before the site

  function tell(away) {
    document.querySelectorAll("[data-away]").forEach((words) => (words.hidden = words.dataset.away !== away));
  }

  async function look() {
    if (document.hidden) return;
    if (!navigator.onLine) {
      tell("network");
      return;
    }
    const answer = await fetch("/healthz", { cache: "no-store", signal: AbortSignal.timeout(EVERY) }).catch(() => null);
    if (answer && !AWAY.includes(answer.status)) location.reload();
    else tell(navigator.onLine ? "site" : "network");
  }

  addEventListener("online", look);
  addEventListener("offline", look);
  document.addEventListener("visibilitychange", look);
  setInterval(look, EVERY);
  look();
})();
