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
  const loaded = htmx.ajax("GET", wide.dataset.address, { source: wide, target: place, swap: "innerHTML", headers });
  if (place === wide) loaded.then(() => new ResizeObserver(() => fit(wide)).observe(wide));
});

// Rows that have no room give way from the end, then whole boxes: nothing is cut. The first box scrolls if it must.
const FEWEST_ROWS = 2;

function fit(column) {
  const boxes = [...column.children].reverse();
  const rows = boxes.flatMap((box) => [...box.querySelectorAll("li")].slice(FEWEST_ROWS).reverse());
  const parts = [...rows, ...boxes.slice(0, -1)];
  const isCut = () => column.scrollHeight > column.clientHeight;
  for (const part of parts) part.hidden = false;
  for (const part of parts) if (isCut()) part.hidden = true;
  // The room that a box leaves may be enough for rows above it.
  for (const row of rows.reverse()) {
    const was = row.hidden;
    row.hidden = false;
    if (was && isCut()) row.hidden = true;
  }
}
