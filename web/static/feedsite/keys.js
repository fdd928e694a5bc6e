// Single keys, as Mastodon and Bluesky have them; a cookie of the settings turns them off (web/pages.py). The arrows
// move within a row of tabs, which is one stop of Tab.
"use strict";

(() => {
  const HEAD = 64; // pixels that the head of the page covers
  const SECOND = 3_000; // milliseconds in which the letter after g counts
  const PLACES = { h: "/", n: "/notifications", p: "" };
  const LIST = "/settings/preferences"; // the page with the list of keys
  let goingAt = -Infinity; // when g was pressed

  const posts = () => Array.from(document.querySelectorAll("main article[tabindex]")).filter((one) => one.offsetParent);

  function current() {
    return document.activeElement.closest("main article[tabindex]");
  }

  // To the neighbour of the post with the focus; without one to the first that is to be seen.
  function move(step) {
    const all = posts();
    const at = all.indexOf(current());
    const next = at < 0 ? all.find((one) => one.getBoundingClientRect().bottom > HEAD) : all[at + step];
    if (!next) return;
    next.focus({ preventScroll: true });
    next.scrollIntoView({ block: next.offsetHeight > innerHeight / 2 ? "start" : "nearest" });
  }

  function press(act) {
    current()?.querySelector(`[data-act="${act}"]`)?.click();
  }

  function visible(selector) {
    return Array.from(document.querySelectorAll(selector)).find((one) => one.offsetParent);
  }

  function search() {
    const field = visible('main input[type="search"], aside input[type="search"]');
    if (field) field.focus();
    else location.assign("/search");
  }

  function write() {
    const area = visible(".composer:not(.answer) textarea");
    if (area && area.getBoundingClientRect().bottom > HEAD) area.focus();
    else document.querySelector(".write").click(); // over the page
  }

  async function list() {
    let dialog = document.getElementById("keys");
    if (!dialog) {
      const page = await fetch(LIST).then((answer) => answer.text());
      dialog = new DOMParser().parseFromString(page, "text/html").getElementById("keys");
      if (!dialog) return location.assign(LIST);
      document.body.append(dialog);
    }
    if (dialog.open) dialog.close();
    else dialog.showModal();
  }

  const KEYS = {
    j: () => move(1),
    k: () => move(-1),
    l: () => press("like"),
    r: () => press("reply"),
    b: () => press("repost"),
    n: write,
    "/": search,
    "?": list,
    g: ({ timeStamp }) => (goingAt = timeStamp),
  };

  function go({ key }) {
    location.assign(key === "p" ? document.querySelector(".me .person").href : PLACES[key]);
  }

  document.addEventListener("keydown", (event) => {
    if (document.cookie.split("; ").includes("keys=off")) return;
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]")) return;
    const open = document.querySelector("dialog[open]");
    if (open && (open.id !== "keys" || event.key !== "?")) return;
    const isGoing = event.timeStamp - goingAt < SECOND && event.key in PLACES;
    const work = isGoing ? go : KEYS[event.key];
    if (!work || (event.repeat && !"jk".includes(event.key))) return;
    event.preventDefault();
    goingAt = -Infinity;
    work(event);
  });

  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-keys]") || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    list();
  });

  // --- Tabs
  for (const tabs of document.querySelectorAll("nav.tabs")) {
    const links = Array.from(tabs.querySelectorAll("a"));
    const here = links.find((link) => link.ariaCurrent) || links[0];
    for (const link of links) link.tabIndex = link === here ? 0 : -1;
    tabs.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const at = links.indexOf(event.target);
      if (!step || at < 0 || event.altKey) return;
      event.preventDefault();
      const way = document.dir === "rtl" ? -step : step;
      links[(at + way + links.length) % links.length].focus();
    });
  }

  // --- The first skip link leads to the post that is read, not only to the feed
  document.querySelector('.skip[href="#feed"]').addEventListener("click", (event) => {
    event.preventDefault();
    move(1);
  });
})();
