// Additions of the pages to htmx: messages of outcomes, keys in feeds. Pages work without it.
"use strict";

// A key that an input method takes is not ours. Safari tells only by its code that it ends the choice of a character.
addEventListener("keydown", (event) => {
  if (event.isComposing || event.keyCode === 229) event.stopImmediatePropagation();
}, { capture: true });

// --- The toast: one place for everything that was done, and for what went wrong
const toast = document.getElementById("toast"); // its words
const toastBox = toast.parentElement;
const toastTimes = { least: 6_000, offer: 10_000, letter: 70 }; // milliseconds
let toastTimer;
let beforeToast = null; // what had the focus

// Says what happened, and where something may be done about it, offers that.
function say(text, offer, act) {
  if (!text) return;
  if (!offer) {
    showToast([text]);
    return;
  }
  const button = document.createElement("button");
  button.textContent = offer;
  button.className = "plain";
  button.addEventListener("click", () => {
    closeToast();
    act();
  });
  showToast([text, " ", button]);
}

function showToast(parts, isError) {
  toast.replaceChildren(...parts);
  toastBox.classList.add("shown");
  toastBox.classList.toggle("error", Boolean(isError));
  toastBox.lastElementChild.hidden = false;
  clearTimeout(toastTimer);
  if (isError) return; // until it is read
  const { least, offer, letter } = toastTimes;
  const stays = Math.max(toast.querySelector("a, button") ? offer : least, letter * toast.textContent.length);
  toastTimer = setTimeout(expireToast, stays);
}

function expireToast() {
  if (toastBox.matches(":hover, :focus-within")) toastTimer = setTimeout(expireToast, 1_000); // somebody is at it
  else closeToast();
}

function closeToast() {
  const hadFocus = toastBox.contains(document.activeElement);
  toastBox.classList.remove("shown");
  toastBox.lastElementChild.hidden = true;
  toast.querySelectorAll("a, button").forEach((offer) => offer.remove());
  if (hadFocus) beforeToast?.focus({ preventScroll: true });
}

toastBox.lastElementChild.addEventListener("click", closeToast);
toastBox.addEventListener("focusin", ({ relatedTarget }) => {
  if (relatedTarget && !toastBox.contains(relatedTarget)) beforeToast = relatedTarget;
});

// What the server says as the page comes. A page that the browser brings back has said it before.
addEventListener("DOMContentLoaded", () => {
  const told = document.querySelector("ul.messages");
  if (!told || performance.getEntriesByType("navigation")[0]?.type === "back_forward") return;
  const lines = Array.from(told.children);
  const parts = lines.flatMap((line, at) => (at ? ["\n", ...line.childNodes] : [...line.childNodes]));
  setTimeout(() => showToast(parts, lines.some((line) => line.matches(".error"))), 100); // screen readers hear what changes
});

// --- Outcomes
document.body.addEventListener("said", ({ detail }) => showToast([detail.words], detail.problem));
document.body.addEventListener("published", () => say(toast.dataset.published));
document.body.addEventListener("held", (event) => say(event.detail.words));
document.body.addEventListener("saved", (event) => say(event.detail.words ?? toast.dataset.saved));
document.body.addEventListener("replied", () => say(toast.dataset.published));
// An answer accepts the message request that the page asks about.
document.body.addEventListener("answered", () => {
  const asks = document.getElementById("request");
  if (!asks) return;
  asks.remove();
  document.body.dispatchEvent(new CustomEvent("notified")); // the counts
});
// The focus was on what is about to go: it moves on to a neighbour, not to the top of the page.
function leave(item) {
  const neighbour = item && (item.nextElementSibling || item.previousElementSibling);
  if (neighbour) neighbour.focus({ preventScroll: true });
}
document.body.addEventListener("deleted", (event) => {
  say(toast.dataset.deleted);
  leave(event.target.closest("article"));
});
// An item that the reader dismissed is back: its card in its place in a feed, or off the list of dismissed items.
document.body.addEventListener("restored", (event) => {
  const item = event.target.closest("article");
  if (event.target.matches('[hx-swap="delete"]')) {
    say(toast.dataset.restored);
    leave(item);
  } else if (item) {
    const focus = () => document.getElementById(`item-${item.dataset.id}`).focus({ preventScroll: true });
    document.body.addEventListener("htmx:afterSettle", focus, { once: true });
  }
});
document.body.addEventListener("htmx:sendError", (event) => {
  if (!isPoll(event.detail.elt)) say(toast.dataset.offline);
});
document.body.addEventListener("htmx:responseError", (event) => {
  if (event.detail.xhr.status !== 401 && isPoll(event.detail.elt)) return;
  tellStatus(event.detail.xhr.status);
});

// --- Menus
document.addEventListener("click", (event) => {
  document.querySelectorAll("details.menu[open]").forEach((menu) => {
    if (!menu.contains(event.target) || event.target.closest(".menu-items a, .menu-items button")) menu.open = false;
  });
});
// Where there is no room beneath its opener a menu stands above it, or the page scrolls: nothing of it is cut off.
document.addEventListener(
  "toggle",
  ({ target }) => {
    if (!target.matches("details.menu[open]") || target.closest("dialog")) return;
    const items = target.querySelector(":scope > :is(.menu-items, .emoji-picker)");
    if (!items) return;
    target.classList.remove("upward");
    const covered = getComputedStyle(document.documentElement);
    const { bottom, height } = items.getBoundingClientRect();
    if (bottom <= innerHeight - (parseFloat(covered.scrollPaddingBottom) || 0)) return;
    const room = target.getBoundingClientRect().top - (parseFloat(covered.scrollPaddingTop) || 0);
    if (room >= height) target.classList.add("upward");
    else items.scrollIntoView({ block: "nearest" });
  },
  true,
);
// A choice of the audience closes its menu; arrow keys only try one after the other.
function chosen(menu) {
  menu.open = false;
  menu.querySelector("summary").focus();
}
document.addEventListener("click", (event) => {
  const label = event.target.closest(".audience label");
  if (label && event.detail) setTimeout(() => chosen(label.closest("details")));
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !event.target.matches(".audience input")) return;
  event.preventDefault(); // it would publish
  chosen(event.target.closest("details"));
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const menu = document.querySelector("details.menu[open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});

// --- Tabs that do not fit are scrolled to where one is
document.querySelectorAll(".tabs [aria-current]").forEach((tab) => {
  tab.parentElement.scrollLeft = tab.offsetLeft - (tab.parentElement.clientWidth - tab.offsetWidth) / 2;
});

// --- Texts grow while they are written, also where the browser does not do it by itself (field-sizing)
function grow(area) {
  area.style.height = "0"; // the style sheet has its least
  area.style.height = `${area.scrollHeight + area.offsetHeight - area.clientHeight}px`;
}
if (!CSS.supports("field-sizing", "content")) {
  const growAll = () => document.querySelectorAll("textarea").forEach(grow);
  for (const kind of ["input", "focusin"]) {
    document.addEventListener(kind, ({ target }) => target.matches("textarea") && grow(target));
  }
  document.addEventListener("reset", () => setTimeout(growAll));
  document.body.addEventListener("htmx:load", growAll);
}

// --- Times on the first page, which the server wrote in the site's time zone, as web/formats has them
function localizeTimes() {
  const page = document.documentElement.lang;
  const isEnglish = page.startsWith("en");
  const format = (moment, options) => new Intl.DateTimeFormat(isEnglish ? "en-GB" : `${page}-u-nu-latn`, options).format(moment);
  const now = new Date();
  const two = (number) => String(number).padStart(2, "0");

  function offset(moment) {
    const minutes = -moment.getTimezoneOffset();
    if (!minutes) return "UTC";
    const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
    return `UTC${minutes > 0 ? "+" : "\u2212"}${hours}${rest ? `:${two(rest)}` : ""}`;
  }

  function whole(moment) {
    const day = { day: "numeric", month: "long", year: "numeric" };
    const hour = page.startsWith("zh") ? "2-digit" : "numeric";
    if (!isEnglish) return `${format(moment, { ...day, hour, minute: "2-digit" })} ${offset(moment)}`;
    return `${format(moment, day)}, ${two(moment.getHours())}:${two(moment.getMinutes())} ${offset(moment)}`;
  }

  document.querySelectorAll(".full-time > time").forEach((time) => {
    time.textContent = whole(new Date(time.dateTime));
  });
  document.querySelectorAll(".time > time[title]").forEach((time) => {
    const moment = new Date(time.dateTime);
    time.title = whole(moment);
    if (now - moment < 86_400_000) return; // it says how long ago
    const isThisYear = moment.getFullYear() === now.getFullYear();
    time.textContent = format(moment, { day: "numeric", month: "short", ...(isThisYear ? {} : { year: "numeric" }) });
  });
}

// --- The browser's time zone, for the times that the server writes (accounts/locale.py)
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zone && !document.cookie.split("; ").includes(`time_zone=${zone}`)) {
  const secure = location.protocol === "https:" ? "; secure" : "";
  document.cookie = `time_zone=${zone}; path=/; max-age=31536000; samesite=lax${secure}`;
  localizeTimes();
  // The page of a session says its times in it at once.
  addEventListener("load", () => document.querySelectorAll(".look-whole").forEach((one) => htmx.trigger(one, "changed")));
}

// --- Feeds: a hidden page asks nothing
function isPoll(element) {
  return element.hasAttribute("data-poll");
}

document.body.addEventListener("htmx:beforeRequest", (event) => {
  const element = event.detail.elt;
  if (isPoll(element) && document.hidden) event.preventDefault();
  else if (element.hasAttribute("data-more")) setBusy(true);
});
document.body.addEventListener("htmx:afterRequest", (event) => {
  if (event.detail.elt.hasAttribute("data-more")) setBusy(false);
});

function setBusy(busy) {
  const feed = document.getElementById("feed");
  if (feed) feed.setAttribute("aria-busy", String(busy));
}

function number() {
  document.querySelectorAll('[role="feed"] > article').forEach((item, place) => {
    item.setAttribute("aria-posinset", place + 1);
    item.setAttribute("aria-setsize", -1);
  });
}
number();
document.body.addEventListener("htmx:afterSettle", number);

// The keys of the WAI-ARIA feed pattern.
document.addEventListener("keydown", (event) => {
  const item = event.target.closest('[role="feed"] > article');
  if (item && !event.target.matches("textarea, input, select") && (event.key === "PageDown" || event.key === "PageUp")) {
    const neighbour = event.key === "PageDown" ? item.nextElementSibling : item.previousElementSibling;
    if (neighbour) {
      event.preventDefault();
      neighbour.focus();
    }
  }
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.matches("textarea")) {
    event.preventDefault();
    event.target.form.requestSubmit();
  }
});

// --- Where the reader is in their home: kept every now and then, for the next visit
(() => {
  const timeline = document.querySelector("[data-position]");
  if (!timeline) return;
  const EVERY = 10_500;
  const HEAD = 80; // what the head of the page covers
  let told = null;
  let timer = null;

  function atTop() {
    const items = document.querySelectorAll("#feed > article");
    const item = Array.from(items).find((one) => one.getBoundingClientRect().bottom > HEAD);
    return item ? item.dataset.id : null;
  }
  told = atTop(); // the page was opened here, which its answer has noted

  function tell() {
    timer = null;
    const id = atTop();
    if (!id || id === told) return;
    told = id;
    const headers = credentials();
    const body = new URLSearchParams({ item_id: id });
    fetch(timeline.dataset.position, { method: "POST", headers, body, keepalive: true }).catch(() => {});
  }

  document.addEventListener("scroll", () => (timer ??= setTimeout(tell, EVERY)), { passive: true });
  window.addEventListener("pagehide", tell);
  document.addEventListener("visibilitychange", () => document.hidden && tell());
})();

// A word of this page for the next one in this tab.
function remember(name, value) {
  try {
    if (value) sessionStorage.setItem(name, JSON.stringify(value));
    else sessionStorage.removeItem(name);
  } catch {
    // the browser keeps nothing
  }
}

function recall(name) {
  try {
    return JSON.parse(sessionStorage.getItem(name));
  } catch {
    return null;
  }
}
