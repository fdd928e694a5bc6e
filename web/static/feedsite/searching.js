// The page of the search: what was searched of late in this browser.
"use strict";

(() => {
  const KEPT = 8;
  const field = document.getElementById("q");
  if (field.autofocus) field.setSelectionRange(field.value.length, field.value.length);

  // --- Recent searches: in this browser only, by reader
  const recent = document.getElementById("recent");
  const place = `searches-${recent?.dataset.reader}`;
  const FORGOTTEN = 90 * 86_400_000; // milliseconds after the last search

  // An earlier version of this page kept the list alone.
  function kept(key) {
    try {
      const value = JSON.parse(localStorage.getItem(key));
      return Array.isArray(value) ? { at: Date.now(), asked: value } : { at: 0, asked: [], ...value };
    } catch {
      return { at: 0, asked: [] };
    }
  }

  function known() {
    const { asked } = kept(place);
    return Array.isArray(asked) ? asked.filter((one) => typeof one === "string") : [];
  }

  function write(key, value) {
    try {
      if (value.asked.length) localStorage.setItem(key, JSON.stringify(value));
      else localStorage.removeItem(key);
    } catch {
      // no room, or the browser keeps nothing
    }
  }

  function keep(searches) {
    write(place, { at: Date.now(), asked: searches });
  }

  // Those of readers who have searched here for the last time, too.
  function forget() {
    for (const key of Object.keys(localStorage).filter((one) => one.startsWith("searches-"))) {
      const { at, asked } = kept(key);
      write(key, at >= Date.now() - FORGOTTEN ? { at, asked } : { at, asked: [] });
    }
  }
  try {
    forget();
  } catch {
    // the browser keeps nothing
  }

  if (recent) {
    const asked = recent.dataset.asked;
    if (asked) keep([asked, ...known().filter((one) => one !== asked)].slice(0, KEPT));
    else if (known().length) {
      const links = known().map((one) => {
        const link = document.createElement("a");
        link.href = `${location.pathname}?${new URLSearchParams({ q: one })}`;
        link.textContent = one;
        link.dir = "auto";
        const entry = document.createElement("li");
        entry.append(link);
        return entry;
      });
      recent.querySelector("ul").replaceChildren(...links);
      recent.hidden = false;
    }
    recent.querySelector("button").addEventListener("click", () => {
      keep([]);
      recent.hidden = true;
      field.focus();
    });
  }
})();
