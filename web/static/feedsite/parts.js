// How htmx works here, and what stands in every page for its scripts. `PARTS` stands before this (web/static_files.py).
"use strict";

// Forms that are shown again (422) are swapped in. Styles come from site.css and nothing is evaluated, for a strict CSP.
Object.assign(htmx.config, {
  includeIndicatorStyles: false,
  allowEval: false,
  allowScriptTags: false,
  historyCacheSize: 0,
  attributesToSettle: ["class", "width", "height"],
  responseHandling: [
    { code: "204", swap: false },
    { code: "[23]..", swap: true },
    { code: "422", swap: true },
    { code: "...", swap: false, error: true },
  ],
});

{
  const [icons] = document.querySelector(".side .nav use").getAttribute("href").split("#");
  const holder = document.createElement("template");
  holder.innerHTML = PARTS.replaceAll('<use href="', `$&${icons}`);
  document.querySelector(".side").append(holder.content.querySelector(".toast"));
  const tools = holder.content.querySelector(".tools");
  const composer = document.querySelector("form[data-short]");
  if (composer) {
    composer.querySelector(".row").prepend(...tools.childNodes);
    // The script may be older than the site's choice of who may look.
    composer.querySelector('.audience [value="public"] ~ span > small').textContent = composer.dataset.short;
  }
  tools?.remove();
  document.body.append(holder.content);
}
