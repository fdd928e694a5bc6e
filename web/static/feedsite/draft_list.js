// The list of drafts in the composer of a new post: what is written goes there, and comes back from there. It also leads to
// replies, quotes and edits that were begun.
"use strict";

(() => {
  const MOST = 20;
  const BEGINNING = 80; // characters of a draft that its line shows
  const ADDRESSES = { reply: "/items/new?reply_to=", quote: "/items/new?quote_of=", edit: "/items/", scheduled: "/scheduled/" };

  function line(list, place) {
    const draft = readDraft(place);
    const entry = list.querySelector("template").content.firstElementChild.cloneNode(true);
    const written = [draft.text, draft.title, draft.option_1, draft.warning].find((text) => text?.trim());
    const letters = Array.from((written || list.dataset.wordless).trim());
    const words = letters.slice(0, BEGINNING).join("") + (letters.length > BEGINNING ? "…" : "");
    const time = new Date(draft.at).toLocaleString(document.documentElement.lang, { dateStyle: "medium", timeStyle: "short" });
    entry.dataset.place = place;
    entry.querySelector("bdi").textContent = words;
    entry.querySelector("small").textContent = [list.dataset[place.split(":")[0]], time].filter(Boolean).join(" · ");
    const drop = entry.querySelector('[data-draft-act="drop"]');
    drop.setAttribute("aria-label", `${drop.textContent}: ${words}`);
    return entry;
  }

  function show(list) {
    const places = draftPlaces().filter((place) => !/^post(\+|$)/.test(place) && readDraft(place));
    places.sort((one, other) => readDraft(other).at - readDraft(one).at);
    list.querySelector("ul").replaceChildren(...places.map((place) => line(list, place)));
  }

  // What is written next is another post.
  function begin(form) {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    form.dataset.key = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
    renewComposer(form);
  }

  // The draft of the composer, with those of the further posts of a thread.
  function whole() {
    const [draft, parts] = [readDraft("post"), partDrafts()];
    return parts.length ? { at: parts[0].at, ...draft, parts } : draft;
  }

  function lay(form, draft) {
    const { parts = [], ...first } = draft || {};
    writeDraft("post", draft && first);
    writePartDrafts(parts);
    begin(form);
    renewParts(form);
  }

  function keep(form, list) {
    const draft = whole();
    if (!draft) return;
    if (draftPlaces().filter((place) => place.startsWith("saved:")).length >= MOST) {
      say(list.dataset.full);
      return;
    }
    writeDraft(`saved:${Date.now()}`, draft);
    lay(form, null);
    say(toast.dataset.kept);
  }

  // What stands in the composer goes where the draft was.
  function take(form, place) {
    const [kind, id] = place.split(":");
    if (kind in ADDRESSES) {
      location.assign(ADDRESSES[kind] + id + (kind === "edit" ? "/edit" : ""));
      return;
    }
    const [draft, written] = [readDraft(place), whole()];
    writeDraft(place, written);
    lay(form, draft);
    form.elements.text.focus();
  }

  function drop(list, place) {
    const draft = readDraft(place);
    writeDraft(place, null);
    say(toast.dataset.discarded, toast.dataset.undo, () => {
      writeDraft(place, draft);
      show(list);
    });
  }

  document.addEventListener("toggle", ({ target }) => {
    if (target.matches("details.drafts") && target.open) show(target);
  }, { capture: true });
  document.addEventListener("click", ({ target }) => {
    const button = target.closest("[data-draft-act]");
    if (!button) return;
    const list = button.closest("details");
    const place = button.closest("li")?.dataset.place;
    const { draftAct } = button.dataset;
    if (draftAct === "keep") keep(button.form, list);
    else if (draftAct === "open") take(button.form, place);
    else drop(list, place);
    show(list);
    if (!button.isConnected && draftAct === "drop") list.querySelector("button").focus();
  });
})();
