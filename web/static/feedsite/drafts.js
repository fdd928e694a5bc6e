// Drafts: what is written in a composer is kept in this browser, for each reader and place, until it is published or
// discarded. A place is a new post, a reply to an item, the edit of one (`data-draft`), or a line of the list of drafts.
"use strict";

const FORGOTTEN = 90 * 86_400_000; // milliseconds after which a draft is dropped
const DRAFTS = "draft ";
const unkept = new Map(); // what the browser refused to keep, by place: it lives as long as this page

function draftKey(place) {
  return `${DRAFTS}${document.body.dataset.reader} ${place}`;
}

function keysOfDrafts(beginning) {
  try {
    return Object.keys(localStorage).filter((key) => key.startsWith(beginning));
  } catch {
    return []; // the browser keeps nothing
  }
}

// The places of the reader's drafts.
function draftPlaces() {
  const kept = keysOfDrafts(draftKey("")).map((key) => key.slice(draftKey("").length));
  return [...new Set([...kept, ...unkept.keys()])];
}

function parsedDraft(key) {
  try {
    const draft = JSON.parse(localStorage.getItem(key));
    return typeof draft === "object" ? draft : null;
  } catch {
    return null;
  }
}

function readDraft(place) {
  return unkept.get(place) || parsedDraft(draftKey(place));
}

// An older state must not come back in the place of one that the browser refused.
function dropDraft(place) {
  try {
    localStorage.removeItem(draftKey(place));
  } catch {
    // the browser keeps nothing
  }
}

function writeDraft(place, draft) {
  unkept.delete(place);
  try {
    if (draft) localStorage.setItem(draftKey(place), JSON.stringify(draft)); // other tabs hear of a change, not of an end
    else localStorage.removeItem(draftKey(place));
  } catch {
    if (draft) unkept.set(place, draft); // the browser keeps nothing, or no more
    dropDraft(place);
  }
  document.body.toggleAttribute("data-unkept", unkept.size > 0);
}

for (const key of keysOfDrafts(DRAFTS)) {
  if (!(parsedDraft(key)?.at >= Date.now() - FORGOTTEN)) localStorage.removeItem(key);
}

// The browser asks before it leaves a page that has drafts which it refused to keep.
window.addEventListener("beforeunload", (event) => {
  if (unkept.size) event.preventDefault();
});
