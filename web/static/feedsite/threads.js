// Threads: the further posts of a composer. Each is a composer of its own after the first (`post+2`, `post+3` …), with its
// draft, pictures, poll and count. They are sent with the first, their fields named by their places.
"use strict";

const LONGEST_THREAD = 25;

function partsOf(form) {
  const found = [];
  for (let next = form.nextElementSibling; next?.matches(".part"); next = next.nextElementSibling) found.push(next);
  return found;
}

function firstOf(part) {
  let first = part;
  while (first.matches(".part")) first = first.previousElementSibling;
  return first;
}

function partPlaces() {
  const number = (place) => Number(place.slice("post+".length));
  return draftPlaces().filter((place) => place.startsWith("post+") && readDraft(place)).sort((one, other) => number(one) - number(other));
}

// The drafts of further posts, in their order.
function partDrafts() {
  return partPlaces().map(readDraft);
}

function writePartDrafts(drafts) {
  partPlaces().forEach((place) => writeDraft(place, null));
  drafts.forEach((draft, at) => writeDraft(`post+${at + 2}`, draft));
}

// Gives the composers of the page the further posts that are in the drafts.
async function renewParts(form) {
  partsOf(form).forEach((part) => part.remove());
  const places = partPlaces();
  for (const place of places) await addPart(form, Number(place.slice("post+".length)));
}

// A part comes with the fields that a form without JavaScript would have, named by its place.
function unprefixed(html) {
  const page = new DOMParser().parseFromString(html, "text/html");
  for (const part of page.querySelectorAll("form.part")) {
    const prefix = `${part.dataset.number}-`;
    for (const field of part.querySelectorAll("[name]")) field.setAttribute("name", field.getAttribute("name").replace(prefix, ""));
    for (const template of part.querySelectorAll("template")) {
      for (const field of template.content.querySelectorAll("[name]")) field.setAttribute("name", field.getAttribute("name").replace(prefix, ""));
    }
  }
  return page.body.innerHTML;
}

async function addPart(form, number) {
  const answer = await fetch(`/items/new/part?number=${number}`, { headers: { ...credentials(), "HX-Request": "true" } }).catch(() => null);
  if (!answer?.ok) {
    say(toast.dataset.offline);
    return null;
  }
  const last = partsOf(form).at(-1) || form;
  if (!last.isConnected) return null;
  htmx.swap(last, unprefixed(await answer.text()), { swapStyle: "afterend", swapDelay: 0, settleDelay: 0 });
  return last.nextElementSibling;
}

(() => {
  const isThread = (form) => form?.matches?.('form[data-draft="post"]') && partsOf(form).length > 0;
  const isWritten = (part) => part.elements.text.value.trim() || listOf(part)?.children.length || (part.elements.option_1 && readDraft(part.dataset.draft));

  async function another(form) {
    const { unplanned, many } = form.querySelector(".another").dataset;
    const used = new Set(partsOf(form).map(({ dataset }) => Number(dataset.number)));
    const last = Math.max(1, ...used);
    if (form.elements.publish_at?.value) say(unplanned);
    else if (last >= LONGEST_THREAD) say(many);
    else (await addPart(form, last + 1))?.elements.text.focus();
  }

  // Those that follow move up, with their drafts.
  function drop(part) {
    const form = firstOf(part);
    const gone = readDraft(part.dataset.draft);
    const rest = partsOf(form).filter((one) => one !== part);
    const drafts = rest.map((one) => readDraft(one.dataset.draft));
    (part.nextElementSibling?.matches(".part") ? part.nextElementSibling : part.previousElementSibling).elements.text.focus();
    part.remove();
    writeDraft(part.dataset.draft, null);
    rest.forEach((one, at) => {
      writeDraft(one.dataset.draft, null);
      one.dataset.number = at + 2;
      one.dataset.draft = `post+${at + 2}`;
    });
    rest.forEach((one, at) => writeDraft(one.dataset.draft, drafts[at]));
    if (!gone) return;
    say(toast.dataset.discarded, toast.dataset.undo, async () => {
      writeDraft(`post+${rest.length + 2}`, gone);
      await addPart(form, rest.length + 2);
    });
  }

  document.addEventListener("click", (event) => {
    const plus = event.target.closest('form.composer button[name="more"]');
    const button = event.target.closest("[data-part-act]");
    if (!plus && !button) return;
    event.preventDefault();
    if (plus) another(plus.form);
    else if (button.dataset.partAct === "add") another(firstOf(button.form));
    else if (button.dataset.partAct === "drop") drop(button.form);
    else {
      const form = firstOf(button.form);
      form.requestSubmit(form.querySelector(".send"));
    }
  });
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("form.part")) return;
    event.preventDefault(); // Enter in one of its fields
    const form = firstOf(event.target);
    form.requestSubmit(form.querySelector(".send"));
  });

  // --- Sending: the pictures of all posts first
  const isUnsent = (part) => coming.has(part) || Array.from(listOf(part).children).some((one) => one.dataset.state !== "kept");

  document.addEventListener("htmx:confirm", (event) => {
    const form = event.detail.elt;
    const unsent = isThread(form) && partsOf(form).find(isUnsent);
    if (!unsent) return;
    event.preventDefault();
    event.stopPropagation();
    attaching(unsent, ({ wait }) => wait(unsent, () => form.requestSubmit(form.querySelector(".send"))));
  }, { capture: true });

  document.body.addEventListener("htmx:configRequest", ({ detail }) => {
    if (!isThread(detail.elt)) return;
    const written = partsOf(detail.elt).filter(isWritten);
    written.forEach((part, at) => {
      for (const [name, value] of new FormData(part)) detail.formData.append(`${at + 2}-${name}`, value);
    });
    if (written.length) detail.formData.set("posts", written.length + 1);
  });

  // What comes back has the further posts too, where one of them was refused.
  document.body.addEventListener("htmx:beforeSwap", ({ detail }) => {
    const form = detail.requestConfig?.elt;
    if (!form?.matches?.('form[data-draft="post"]') || !detail.shouldSwap) return;
    const parts = partsOf(form);
    if (!parts.length) return;
    if (detail.xhr.status < 300) writePartDrafts([]);
    for (const part of parts) {
      delete part.dataset.known; // a box that goes with the focus in it fires `change`
      part.remove();
    }
    detail.serverResponse = detail.xhr.status < 300 ? detail.serverResponse : unprefixed(detail.serverResponse);
  });

  document.addEventListener("DOMContentLoaded", () => {
    const form = composerAt("post");
    if (form && !partsOf(form).length && partPlaces().length) renewParts(form);
  });
})();
