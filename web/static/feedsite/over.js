// Write and Quote over the page, so that its place stays. Without JavaScript their links lead to a page.
"use strict";

(() => {
  const dialog = document.getElementById("over-page");
  const place = document.getElementById("over-form");
  const home = toastBox.parentElement; // what is said stands in front of the dialog
  let address = ""; // of the composer in it
  let at = ""; // its draft
  let isComing = false;

  async function open(asked, source) {
    if (isComing || dialog.open) return;
    isComing = true;
    await htmx.ajax("GET", asked, { source, target: place, swap: "innerHTML" }).catch(() => {});
    isComing = false;
    if (!place.querySelector("form")) {
      place.replaceChildren();
      return;
    }
    address = asked;
    at = place.querySelector("form").dataset.draft;
    closeToast();
    dialog.append(toastBox);
    dialog.showModal();
    place.querySelector("form").elements.text.focus();
  }

  document.addEventListener("click", (event) => {
    const opener = event.target.closest(".nav > .write:not([aria-current]), a[data-quote]");
    if (!opener || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || event.button) return;
    event.preventDefault();
    open(opener.getAttribute("href"), opener);
  });

  // What is written stays a draft, which the composer of the page shows too. What is published leaves it.
  function end() {
    home.append(toastBox);
    place.replaceChildren();
    const other = composerAt(at);
    if (other) renewComposer(other);
  }
  dialog.addEventListener("close", () => {
    const isKept = place.querySelector("form") && readDraft(at);
    end();
    if (isKept) say(toast.dataset.kept);
  });

  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // beside it
    if (!event.target.closest("[data-close]")?.form) return;
    const from = at;
    const draft = readDraft(from);
    writeDraft(from, null);
    dialog.close();
    if (!draft) return;
    say(toast.dataset.discarded, toast.dataset.undo, () => {
      writeDraft(from, draft);
      open(address, dialog);
    });
  });
  // Escape closes what is open in it first.
  dialog.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && dialog.querySelector("details.menu[open], .completions")) event.preventDefault();
  });

  document.body.addEventListener("written", ({ detail }) => {
    dialog.close();
    if (detail.address) say(detail.words, dialog.dataset.view, () => location.assign(detail.address));
    else say(detail.words);
  });
  document.body.addEventListener("held", () => dialog.open && !place.querySelector("form") && dialog.close());
})();
