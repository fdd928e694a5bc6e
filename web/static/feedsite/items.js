// Items in open pages: their cards are renewed in place, the newer one wins, and replies stand where they belong.
"use strict";

const talk = document.getElementById("messages"); // of a conversation (messages.js)

// The entries that show an item: its own, and reposts of it.
function entriesOf(id) {
  return Array.from(document.querySelectorAll(`#item-${id}, [data-original="${id}"]`))
    .filter((item) => !item.matches(".leaving"));
}

function cardOf(html, id) {
  return new DOMParser().parseFromString(html, "text/html").getElementById(`item-${id}`);
}

async function fetchCard(id, isWhole) {
  const bubble = talk && `/conversations/${talk.dataset.conversation}?after=${Number(id) - 1}`;
  const card = replies?.querySelector(`:scope > [data-id="${id}"]`) ? `/items/${id}?in_thread` : `/items/${id}`;
  const response = await fetch(isWhole ? location.href : bubble || card, {
    headers: { ...credentials(), ...(isWhole ? {} : { "HX-Request": "true", "HX-Current-URL": location.href }) },
  });
  const isGone = response.status === 404 || response.status === 204; // 204: it does not stand in this thread any more
  if (isGone && !bubble) removeItem(id);
  return response.ok ? cardOf(await response.text(), id) : null;
}

// Keep the parts of an item that the page knows better: its reposters and openers, the reason why it is there, its
// menu, and the text written below it.
function keepOf(old, fresh) {
  for (const known of old.querySelectorAll(":scope > .via, :scope > .menu")) {
    const place = fresh.querySelector(`.${known.classList[0]}`);
    if (place) place.replaceWith(known);
    else fresh.prepend(known);
  }
  const top = old.querySelector(":scope > .said > .top"); // the button that follows, beside the name
  if (top) {
    const byline = fresh.querySelector(".byline");
    byline.before(top);
    top.querySelector(".byline").replaceWith(byline);
  }
  const context = old.querySelector(":scope > .said > .context");
  if (context) fresh.querySelector(".context")?.replaceWith(context);
  else fresh.querySelector(".context")?.remove();
  const slot = old.querySelector(":scope > .said > .slot");
  if (slot) placeSlot(fresh, slot);
  for (const further of old.querySelectorAll(":scope > .said > .further")) fresh.querySelector(".said").append(further);
  fresh.classList.toggle("under", old.matches(".under"));
}

// The place in a card where a composer opens.
function slotOf(item) {
  const known = item.querySelector(":scope > .said > .slot");
  if (known) return known;
  const slot = document.createElement("div");
  slot.className = "slot";
  if (item.dataset.id) slot.id = `slot-${item.dataset.id}`;
  placeSlot(item, slot);
  return slot;
}

function placeSlot(item, slot) {
  const said = item.querySelector(":scope > .said");
  const acts = said.querySelector(":scope > .acts");
  if (acts) acts.after(slot);
  else said.append(slot); // of an item that is held
}

function isComposing(item) {
  return Boolean(item.querySelector(":scope > .said > .slot > form"));
}

// Puts a card in the place of an older one of the same entry. While a composer is open in it, the card waits.
function putCard(fresh) {
  const old = document.getElementById(fresh.id);
  if (!old || Number(fresh.dataset.version) < Number(old.dataset.version)) return;
  if (isComposing(old)) {
    old.dataset.late = "true";
    return;
  }
  const isFocused = old.contains(document.activeElement);
  keepOf(old, fresh);
  old.replaceWith(fresh);
  htmx.process(fresh);
  if (isFocused) fresh.focus({ preventScroll: true });
  document.body.dispatchEvent(new CustomEvent("renewed"));
  number();
}

// The entries that show an item inside: quotes of it.
function quotesOf(id) {
  return Array.from(document.querySelectorAll(`[data-quoted="${id}"]`), (quote) => quote.closest("article")).filter(Boolean);
}

// Asks for the cards of an item anew, and for those of its quotes, after everything else that is underway with it.
function renewItem(id) {
  return inTurn(`item ${id}`, async () => {
    for (const entry of [...entriesOf(id), ...quotesOf(id)]) {
      if (isComposing(entry)) {
        entry.dataset.late = "true";
        continue;
      }
      const fresh = await fetchCard(entry.dataset.id, entry.matches(".whole")).catch(() => null);
      if (fresh) putCard(fresh);
    }
  });
}

// A change that came while a composer was open in a card is shown when the composer is closed.
function renewLate() {
  for (const item of document.querySelectorAll("article[data-late]")) {
    if (isComposing(item)) continue;
    delete item.dataset.late;
    renewItem(item.dataset.original || item.dataset.id);
  }
}
document.body.addEventListener("closed", renewLate);
document.body.addEventListener("htmx:afterSettle", renewLate);

// An edit that was made in a card: that card at once, other entries of the item as they are asked for.
// After the events of the answer: they bubble from the form, which goes.
document.body.addEventListener("htmx:afterOnLoad", ({ detail }) => {
  const form = detail.requestConfig.elt;
  if (!form.matches(".slot form.editor") || detail.xhr.status !== 200) return;
  const id = form.dataset.draft.slice("edit:".length);
  const item = form.closest("article");
  const fresh = cardOf(detail.xhr.responseText, id);
  form.remove();
  item.focus({ preventScroll: true });
  if (fresh && item.id === fresh.id && !item.matches(".whole")) {
    delete item.dataset.late;
    putCard(fresh);
    if (entriesOf(id).length === 1) return;
  }
  renewItem(id);
});

function removeItem(id) {
  for (const { dataset } of quotesOf(id)) renewItem(dataset.original || dataset.id);
  for (const item of entriesOf(id)) {
    if (isComposing(item)) {
      item.dataset.late = "true"; // what somebody is writing stays until it is sent or given up
      continue;
    }
    if (item.matches(".whole")) say(toast.dataset.gone);
    if (item.contains(document.activeElement)) {
      const neighbour = item.nextElementSibling || item.previousElementSibling;
      if (neighbour) neighbour.focus({ preventScroll: true });
    }
    item.classList.add("leaving");
    setTimeout(() => {
      item.remove();
      number();
    }, 300);
  }
}

// --- Replies stand each once, whatever came first: one's own, one that was heard of, a following page
const replies = document.querySelector("#feed[data-replies]");

function settleReplies() {
  if (!replies) return;
  const seen = new Set();
  for (const item of replies.querySelectorAll(":scope > article")) {
    // One that was written in a card stands below that card.
    if (seen.has(item.id) || document.querySelector(`.slot > [id="${item.id}"]`)) item.remove();
    else seen.add(item.id);
  }
  if (!seen.size) return;
  replies.setAttribute("role", "feed");
  replies.setAttribute("aria-label", replies.dataset.replies);
  document.querySelectorAll("main > .empty").forEach((empty) => empty.remove());
}
for (const event of ["htmx:oobAfterSwap", "htmx:afterSettle"]) document.body.addEventListener(event, settleReplies);

// A reply of somebody else, to the item of the page or to one of its answers. Others are on pages of their own. An
// answer to the item is next only where the last page is shown.
async function addReply(id, answered) {
  if (!replies || document.getElementById(`item-${id}`)) return;
  const isLast = !document.querySelector('#more [rel="next"]');
  const parent = replies.querySelector(`:scope > article:not(.under)[data-id="${answered}"]`);
  const whole = document.querySelector("article.whole");
  if (!parent && !(isLast && answered === (whole.dataset.original || whole.dataset.id))) return;
  const fresh = await fetchCard(id, false).catch(() => null);
  if (!fresh || document.getElementById(`item-${id}`)) return;
  fresh.classList.add("htmx-added");
  fresh.querySelector(".context")?.remove();
  if (parent) {
    let last = parent;
    while (last.nextElementSibling?.matches(".under")) last = last.nextElementSibling;
    fresh.classList.add("under");
    last.after(fresh);
  } else replies.append(fresh);
  htmx.process(fresh);
  settleReplies();
  number();
}

// One's own reply: in a thread it stands under what it answers, and the focus was in the composer that is gone, or in its row, which is hidden again.
document.body.addEventListener("replied", ({ detail }) => {
  const item = document.getElementById(`item-${detail.id}`);
  const answered = item?.parentElement.closest("#feed[data-replies] > article:not(.under)");
  if (answered) {
    item.classList.add("under");
    answered.after(item);
    number();
  }
  const { activeElement } = document;
  const isGone = ["BODY", "MAIN"].includes(activeElement.tagName) || !activeElement.getClientRects().length;
  if (item && isGone) item.focus({ preventScroll: true });
});
