// The column beside the page, asked for once the page is shown: on wide screens in its place, on narrow ones where
// Discover has one. A page without JavaScript leads to it by a link.
"use strict";

// A browser keeps it for a minute, but for a reader who has followed, muted or blocked meanwhile.
const RELATES = /\/@[^/]+\/(un)?(follow|mute|block)(-for)?$/;
document.addEventListener("submit", ({ target }) => {
  if (RELATES.test(target.getAttribute("action") || location.pathname)) remember("besideIsOld", true);
});

document.body.addEventListener("turned-away", () => remember("besideIsOld", true));

addEventListener("load", () => {
  const wide = document.getElementById("beside");
  if (!wide) return;
  const place = matchMedia("(min-width: 1000px)").matches ? wide : document.getElementById("beside-narrow");
  if (!place?.offsetParent) return; // the settings have no such column
  const headers = recall("besideIsOld") ? { "Cache-Control": "no-cache" } : {};
  remember("besideIsOld", null);
  htmx.ajax("GET", wide.dataset.address, { source: wide, target: place, swap: "innerHTML", headers });
});
