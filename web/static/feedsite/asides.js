// The page's own question before a step that is not undone, and the focus, which never falls to the body.
"use strict";

(() => {
  // --- Questions: what `hx-confirm` asks stands in the page's dialog
  const dialog = document.getElementById("question");
  let issue = null;

  document.body.addEventListener("htmx:confirm", (event) => {
    const { question, elt, issueRequest } = event.detail;
    if (!question) return;
    event.preventDefault();
    if (dialog.open) return;
    const button = elt.matches("form") ? elt.querySelector("button") : elt;
    // A choice that belongs to the question: its field names the form.
    const choice = elt.querySelector("template[data-until]");
    const isOpen = choice && !(Date.parse(choice.dataset.until) < Date.now());
    document.getElementById("question-choice").replaceChildren(isOpen ? choice.content.cloneNode(true) : "");
    const sure = dialog.querySelector('[value="sure"]');
    document.getElementById("question-words").textContent = question;
    const words = button.cloneNode(true);
    words.querySelector("small")?.remove();
    sure.textContent = words.textContent.trim();
    sure.classList.toggle("danger", button.matches(".dangerous, [data-final]") || elt.matches("[data-final]"));
    issue = () => issueRequest(true);
    dialog.returnValue = "";
    dialog.showModal();
  });
  dialog.addEventListener("close", () => {
    const go = dialog.returnValue === "sure" ? issue : null;
    issue = null;
    if (go) go();
    rescue();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // beside it
  });

  // --- Focus: where what had it is gone, closed or disabled, it goes to what stands there now
  const FOCUSABLE = "a, button, input, select, textarea, summary, label, [tabindex]";
  let last = null; // what had the focus, unless somebody pressed beside everything
  let article = "";
  let before = null; // the last entry before more of them came

  document.addEventListener("focusin", ({ target }) => {
    if (dialog.contains(target)) return;
    last = target;
    article = target.closest("article")?.id || "";
  });
  document.addEventListener("pointerdown", ({ target }) => {
    if (!target.closest(FOCUSABLE)) last = null;
  });

  function take(element) {
    if (!element || !element.isConnected) return false;
    element.focus({ preventScroll: true });
    return document.activeElement === element;
  }

  // Also what is closed or hidden: it has the focus until the browser draws the page. Safari before 17.4 does not tell.
  function isLost() {
    const active = document.activeElement;
    const isShown = active.checkVisibility?.() ?? active.getClientRects().length > 0;
    return active === document.body || !isShown;
  }

  function rescue() {
    if (!last || !isLost()) return;
    const followers = last.closest("#more") || !last.isConnected ? before?.nextElementSibling : null;
    const summary = last.isConnected ? last.closest("details")?.querySelector("summary") : null;
    const places = [last, summary, last.id && document.getElementById(last.id), followers];
    places.push(article && document.getElementById(article), document.getElementById("main"));
    places.some((place) => place && take(place));
  }

  // A card goes: to the next one that stays.
  document.body.addEventListener("leaving", ({ detail: card }) => {
    if (!card.contains(document.activeElement) && !(isLost() && last && card.contains(last))) return;
    const others = (way) => {
      let other = card[way];
      while (other?.matches(".leaving")) other = other[way];
      return other?.matches("article") && other;
    };
    take(others("nextElementSibling") || others("previousElementSibling")) || take(document.getElementById("main"));
  });

  document.body.addEventListener("htmx:beforeSwap", ({ detail }) => {
    before = detail.target.id === "more" ? document.querySelector("#feed > :last-child, #people > :last-child") : null;
  });
  document.body.addEventListener("htmx:afterSettle", () => setTimeout(rescue));
  document.body.addEventListener("htmx:afterRequest", () => setTimeout(rescue));
})();
