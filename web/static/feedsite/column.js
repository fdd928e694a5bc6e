// The column beside the page, asked for once the page is shown: on wide screens in its place, on narrow ones where
// Discover has one. A page without JavaScript leads to it by a link.
"use strict";

addEventListener("load", () => {
  const wide = document.getElementById("beside");
  if (!wide) return;
  const place = matchMedia("(min-width: 1100px)").matches ? wide : document.getElementById("beside-narrow");
  if (place) htmx.ajax("GET", wide.dataset.address, { source: wide, target: place, swap: "innerHTML" });
});
