// Cards as a whole: a click, a tap or Enter opens the post, as the link of its time does; the way back from its page.
"use strict";

(() => {
  const OPENS = "article.item:not(.whole, .notice, .dismissed)";
  const OWN = "a, button, summary, label, input, select, textarea, form, details, audio, video, .slot";

  function open(card, elsewhere) {
    const link = card.querySelector(".byline > .time");
    if (!link) return; // a quoted post that is not there
    if (elsewhere) window.open(link.href, "_blank", "noopener");
    else link.click();
  }

  // A click that closes a menu does nothing else.
  let closesMenu = false;
  document.addEventListener("pointerdown", () => {
    closesMenu = document.querySelector("details.menu[open]") !== null;
  }, { capture: true });

  function clicked(event) {
    const card = event.target.closest(OPENS);
    if (!card || event.defaultPrevented || closesMenu || event.shiftKey || event.altKey) return;
    const own = event.target.closest(OWN);
    if (own && card.contains(own)) return;
    if (!getSelection().isCollapsed) return;
    if (event.button === 1) event.preventDefault();
    open(event.target.closest(".quote[data-quoted]") || card, event.button === 1 || event.ctrlKey || event.metaKey);
  }
  document.addEventListener("click", clicked);
  document.addEventListener("auxclick", (event) => event.button === 1 && clicked(event));

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.defaultPrevented || !event.target.matches(OPENS)) return;
    event.preventDefault();
    open(event.target, event.ctrlKey || event.metaKey);
  });

  // --- The arrow leads back to where one came from on this site, at the place where one was; else where its link says
  document.addEventListener("click", (event) => {
    const back = event.target.closest("[data-back]");
    if (!back || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    if (history.length < 2 || !document.referrer.startsWith(`${location.origin}/`)) return;
    event.preventDefault();
    history.back();
  });
})();
