// A card of a person beside a link to their profile, for a mouse on a wide screen. It is asked for once a page.
"use strict";

(() => {
  const DELAY = 400; // milliseconds that the mouse rests
  const GRACE = 250; // milliseconds on the way to the card
  const EDGE = 8; // pixels to the edge of the window
  const PROFILE = /^\/@[\w-]+$/;
  const screen = matchMedia("(hover: hover) and (pointer: fine) and (min-width: 1000px)");
  const asked = new Map(); // the path of a profile: its card, or null
  const card = document.createElement("div");
  card.className = "hover-card";
  card.hidden = true;
  let link = null; // the one that is pointed at
  let timer = null;

  function profileAt(target) {
    const found = target.closest?.('a[href^="/@"]');
    return found && PROFILE.test(found.pathname) && !found.closest(".side, .hover-card") ? found : null;
  }

  async function fetchCard(path) {
    const answer = await fetch(`${path}/card`, { headers: { ...said(), "HX-Request": "true" } }).catch(() => null);
    if (!answer?.ok) return null;
    const content = document.createElement("div");
    content.innerHTML = await answer.text();
    return content;
  }

  function hide() {
    clearTimeout(timer);
    timer = null;
    link = null;
    card.hidden = true;
  }

  async function show(of) {
    const path = of.pathname;
    if (!asked.has(path)) asked.set(path, fetchCard(path));
    const content = await asked.get(path);
    if (of !== link || !content || !of.isConnected) return;
    card.replaceChildren(content);
    if (!card.isConnected) document.body.append(card);
    card.hidden = false;
    htmx.process(content);
    const at = of.getBoundingClientRect();
    const below = at.bottom + EDGE + card.offsetHeight < innerHeight;
    card.style.top = `${below ? at.bottom + EDGE : Math.max(EDGE, at.top - EDGE - card.offsetHeight)}px`;
    const begin = document.dir === "rtl" ? at.right - card.offsetWidth : at.left;
    card.style.left = `${Math.max(EDGE, Math.min(begin, innerWidth - card.offsetWidth - EDGE))}px`;
  }

  document.addEventListener("pointerover", ({ target, pointerType }) => {
    if (pointerType !== "mouse" || !screen.matches) return;
    const found = profileAt(target);
    if (card.contains(target) || (found && found === link)) {
      if (!card.hidden) clearTimeout(timer); // back on the link, or on the card
      return;
    }
    clearTimeout(timer);
    if (found) {
      card.hidden = true;
      link = found;
      timer = setTimeout(show, DELAY, found);
    } else if (link) timer = setTimeout(hide, card.hidden ? 0 : GRACE);
  });
  document.addEventListener("pointerdown", ({ target }) => !card.contains(target) && hide());
  document.addEventListener("scroll", hide, { passive: true });
  document.addEventListener("keydown", ({ key }) => ["Escape", "Tab"].includes(key) && hide());
  document.documentElement.addEventListener("pointerleave", hide);

  // A card says how one stands to its person.
  document.addEventListener("submit", ({ target }) => {
    const action = target.getAttribute("action") ?? "";
    if (!card.contains(target)) asked.delete(action.slice(0, action.lastIndexOf("/")));
  });
})();
