// Composers that open and close in cards (their slots), and drafts that are given up and offered back.
"use strict";

(() => {
  const LINKS = '[data-act="reply"], [data-edit]'; // they open a composer

  // The link that opens the composer of a place; of an edit it is in the menu of the card.
  async function openerOf(place) {
    const [kind, id] = place.split(":");
    if (kind === "reply") return document.querySelector(`.acts[data-item="${id}"] [data-act="reply"]`);
    if (kind !== "edit") return null;
    for (const card of entriesOf(id)) await loadMenu(card);
    return document.querySelector(`[data-edit="${id}"]`);
  }

  // A press of the button that answers. site.js tells where that fails.
  async function open(link, event) {
    const target = slotOf(link.closest("article"));
    const swap = { source: link, target, swap: "innerHTML", event };
    await htmx.ajax("GET", link.getAttribute("href"), swap).catch(() => {});
  }
  const opening = new Set();
  document.addEventListener("click", async (event) => {
    const link = event.target.closest('[data-act="reply"]');
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || event.button) return;
    event.preventDefault();
    if (opening.has(link)) return;
    opening.add(link);
    await open(link, event);
    opening.delete(link);
  });

  function close(form) {
    const item = form.closest("article");
    form.remove();
    const back = item.querySelector(isEditor(form) ? ":scope > .menu > summary" : '[data-act="reply"]');
    (back || item).focus({ preventScroll: true });
    document.body.dispatchEvent(new CustomEvent("closed", { detail: item }));
  }

  // Takes the draft away, and offers it back.
  function discard(form, leaves) {
    const place = form.dataset.draft;
    const draft = readDraft(place);
    writeDraft(place, null);
    if (!draft) return;
    const { reader } = document.body.dataset;
    const discarded = { reader, place, draft, address: location.pathname + location.search };
    if (leaves) remember("discarded", discarded);
    else offer(discarded);
  }

  function offer({ place, draft, address }) {
    say(toast.dataset.discarded, toast.dataset.undo, async () => {
      writeDraft(place, draft);
      const form = composerAt(place);
      const opener = form ? null : await openerOf(place);
      if (form) {
        fillComposer(form, draft);
        form.elements.text.focus();
      } else if (opener) opener.click();
      else location.assign(address);
    });
  }

  document.addEventListener("click", (event) => {
    const leave = event.target.closest("[data-discard]");
    if (leave) discard(leave.closest("form"), true);
    const end = event.target.closest("[data-close]");
    const form = end?.closest("form");
    if (!form?.closest(".slot")) return;
    event.preventDefault();
    close(form);
    discard(form, false);
  });

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || document.querySelector("details.menu[open]")) return;
    const form = event.target.closest(".slot form[data-draft]");
    if (!form) return;
    event.preventDefault();
    close(form);
    const draft = readDraft(form.dataset.draft);
    if (!draft) return;
    writeDraft(form.dataset.draft, { ...draft, open: false });
    say(toast.dataset.kept);
  });

  // A composer that is open stays, with what is in it. The one of an item's own page is that of the item.
  document.body.addEventListener("htmx:beforeRequest", (event) => {
    const link = event.detail.elt.closest(LINKS);
    if (!link) return;
    const item = link.closest("article");
    const place = link.dataset.edit ? `edit:${link.dataset.edit}` : `reply:${link.closest(".acts").dataset.item}`;
    const open = item.querySelector(`.slot form[data-draft="${place}"]`) || (item.matches(".whole") && composerAt(place));
    if (!open) return;
    event.preventDefault();
    open.elements.text.focus();
  });

  // Those that were open in this page when it was left: loaded again, or come back to after a log-in.
  const opened = new Set();
  async function reopen() {
    for (const place of draftPlaces()) {
      const draft = readDraft(place);
      if (!draft?.open || draft.page !== location.pathname || opened.has(place) || composerAt(place)) continue;
      const opener = await openerOf(place);
      if (!opener || opened.has(place)) continue;
      opened.add(place);
      if (opener.matches("[data-edit]")) htmx.ajax("GET", opener.getAttribute("hx-get"), { source: opener });
      else open(opener);
    }
  }
  document.body.addEventListener("htmx:beforeSwap", ({ detail }) => {
    const link = detail.requestConfig?.elt;
    if (!link?.matches?.(LINKS) || detail.requestConfig.triggeringEvent) return;
    detail.serverResponse = detail.serverResponse.replaceAll(" autofocus", ""); // the reader did not ask for it just now
  });
  document.body.addEventListener("htmx:afterSettle", ({ detail }) => {
    if (detail.requestConfig?.elt.hasAttribute("data-more")) reopen();
  });
  reopen();

  // The page before leaves a discarded draft for this one to offer.
  const discarded = recall("discarded");
  if (discarded) {
    remember("discarded", null);
    if (discarded.reader === document.body.dataset.reader) offer(discarded); // another user may have come
  }
})();
