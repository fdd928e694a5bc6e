// Acts of menus beside htmx: a link is copied or shared, and cards of people who are muted or blocked leave the page;
// and the page's title says how many notifications are unread. Everything works without it.
"use strict";

// --- A card carries a link in place of its menu, which is asked for when it is opened: without JavaScript the link
// leads to a page. It is asked for each time, because an item may have been pinned or edited meanwhile.
const loading = new WeakMap(); // a menu: its request

// The menu of a card with its items; without them where they did not come, which site.js tells.
function loadMenu(card) {
  const menu = menuOf(card.querySelector(":scope > .menu"));
  if (!loading.has(menu)) loading.set(menu, requestMenu(menu).finally(() => loading.delete(menu)));
  return loading.get(menu);
}

async function requestMenu(menu) {
  menu.querySelector(".menu-items")?.remove();
  slotOf(menu.closest("article")); // of the editor, which an item of the menu opens
  const source = menu.querySelector("summary");
  await htmx.ajax("GET", menu.dataset.href, { source, target: menu, swap: "beforeend" }).catch(() => {});
  return menu;
}

// The link becomes what opens and closes.
function menuOf(place) {
  if (place.matches("details")) return place;
  const link = place.querySelector(".opens");
  const menu = document.createElement("details");
  const summary = document.createElement("summary");
  menu.className = "menu";
  menu.dataset.href = link.href;
  summary.title = link.title;
  summary.setAttribute("aria-label", link.title);
  summary.append(...link.childNodes);
  menu.append(summary);
  const isFocused = link === document.activeElement;
  place.replaceWith(menu);
  if (isFocused) summary.focus({ preventScroll: true });
  return menu;
}

(() => {
  let pressed = null; // the card whose menu was pressed last
  document.addEventListener("click", async (event) => {
    const opener = event.target.closest("article > .menu > :is(.opens, summary)");
    pressed = opener?.closest("article");
    if (!opener || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    if (opener.parentElement.open) return; // it closes
    event.preventDefault();
    const card = pressed;
    const menu = await loadMenu(card);
    if (card === pressed) menu.open = menu.querySelector(".menu-items") !== null;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== " " || !event.target.matches("article > .menu > .opens")) return;
    event.preventDefault(); // it is a button as its menu has, not a link
    event.target.click();
  });

  // --- Copying
  // The clipboard's own interface is for secure addresses only.
  function copyByHand(text) {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "hidden";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }

  async function copy(link) {
    const summary = link.closest("details")?.querySelector("summary");
    let done = false;
    try {
      await navigator.clipboard.writeText(link.href);
      done = true;
    } catch {
      done = copyByHand(link.href);
    }
    summary?.focus({ preventScroll: true });
    if (done) say(link.dataset.copied);
    else location.assign(link.href); // there its address can be copied by hand
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-copied]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    copy(link);
  });

  // --- Sharing: beside the link that is copied, where the browser can share
  function offerSharing(root) {
    if (!navigator.share) return;
    for (const link of root.querySelectorAll("[data-copied][data-share]")) {
      const share = document.createElement("button");
      share.type = "button";
      share.dataset.address = link.href;
      share.append(link.querySelector("svg").cloneNode(true), link.dataset.share);
      const use = share.querySelector("use");
      use.setAttribute("href", use.getAttribute("href").replace("#link", "#share"));
      link.after(share);
      delete link.dataset.share;
    }
  }
  offerSharing(document);
  document.body.addEventListener("htmx:load", ({ target }) => offerSharing(target));
  document.addEventListener("click", ({ target }) => {
    const share = target.closest("[data-address]");
    if (share?.matches(".menu-items button")) navigator.share({ url: share.dataset.address }).catch(() => {}); // given up
  });

  // --- Muting and blocking from a card
  function leave(article) {
    document.body.dispatchEvent(new CustomEvent("leaving", { detail: article })); // asides.js: the focus
    setTimeout(() => {
      article.remove();
      number();
    }, 300);
  }

  // A mute leaves its user out of home and Discover; a block hides both users from each other everywhere.
  document.body.addEventListener("turned-away", ({ detail }) => {
    const sent = document.getElementById("acts");
    say(detail.said, toast.dataset.undo, () => {
      sent.action = detail.undo;
      sent.requestSubmit();
    });
    const theirOwn = `article:has(> .face[href="/@${detail.username}"])`;
    const whole = document.querySelector(`${theirOwn}.whole`);
    const isTheirs = `${location.pathname}/`.startsWith(`/@${detail.username}/`);
    if (detail.blocked && (whole || isTheirs)) {
      location.assign(detail.profile);
      return;
    }
    if (!detail.blocked && !document.querySelector("#timeline, #discover")) return;
    const theirs = document.querySelectorAll(`${theirOwn}, article[data-via="${detail.username}"]`);
    theirs.forEach((article) => article.classList.add("leaving"));
    theirs.forEach(leave);
  });

  // --- An answer may renew what this page does not show, or shows no more: htmx takes that for an error
  document.body.addEventListener("htmx:beforeSwap", ({ detail }) => {
    if (!detail.serverResponse.includes("hx-swap-oob=")) return;
    const answer = document.createElement("template");
    answer.innerHTML = detail.serverResponse;
    const parts = Array.from(answer.content.querySelectorAll("[hx-swap-oob]"));
    const placeless = parts.filter((part) => {
      const [, selector] = part.getAttribute("hx-swap-oob").match(/^\w+:(.+)$/) ?? ["", `#${part.id}`];
      return !document.querySelector(selector);
    });
    placeless.forEach((part) => part.remove());
    if (placeless.length) detail.serverResponse = answer.innerHTML;
  });

  // --- The title counts the unread notifications, as the badge does
  const title = document.title.replace(/^\(\d+\+?\) /, "");

  function count() {
    const badge = document.querySelector("#unread .loud");
    document.title = badge ? `(${badge.textContent.trim()}) ${title}` : title;
  }
  count();
  document.body.addEventListener("htmx:afterSettle", count);
})();
