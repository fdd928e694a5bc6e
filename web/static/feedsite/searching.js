// The page of the search: what was searched of late in this browser, and people's names after `from:`.
"use strict";

(() => {
  const KEPT = 8;
  const PAUSE = 250; // milliseconds without a key before names are asked for
  const field = document.getElementById("q");

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

  // --- Names after `from:`
  const list = document.getElementById("senders");
  let timer;
  let asking = null;

  // The word before the cursor, if it begins with from:.
  function begun() {
    const before = field.value.slice(0, field.selectionStart);
    const found = /(?:^|\s)from[:：][@＠]?([\w-]*)$/i.exec(before);
    return found ? { name: found[1], from: before.length - found[1].length, to: before.length } : null;
  }

  function show(names) {
    list.replaceChildren(...names.map(({ handle, name }, number) => {
      const option = document.createElement("li");
      option.id = `sender-${number}`;
      option.role = "option";
      option.dataset.name = handle;
      const said = document.createElement("bdi");
      said.textContent = name;
      const at = document.createElement("span");
      at.className = "quiet";
      at.textContent = `@${handle}`;
      option.append(said, " ", at);
      return option;
    }));
    list.hidden = !names.length;
    field.setAttribute("aria-expanded", String(!list.hidden));
    field.removeAttribute("aria-activedescendant");
  }

  async function offer() {
    const word = begun();
    asking?.abort();
    if (!word?.name) return show([]);
    asking = new AbortController();
    const query = new URLSearchParams({ q: word.name, show: "people" });
    try {
      const answer = await fetch(`${location.pathname}?${query}`, { headers: credentials(), signal: asking.signal });
      if (!answer.ok) return show([]);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const people = Array.from(page.querySelectorAll("ul.people > .item")).slice(0, 5);
      if (begun()?.name !== word.name) return undefined;
      return show(people.map((one) => ({
        handle: one.querySelector(".handle").textContent.trim().slice(1),
        name: one.querySelector("bdi").textContent,
      })));
    } catch {
      return undefined; // another one was asked for, or there is no connection
    }
  }

  function choose(option) {
    const word = begun();
    if (!word) return;
    field.setRangeText(`${option.dataset.name} `, word.from, word.to, "end");
    show([]);
    field.focus();
  }

  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(offer, PAUSE);
  });
  field.addEventListener("blur", () => setTimeout(() => show([]), 200));
  list.addEventListener("pointerdown", (event) => {
    const option = event.target.closest("[role=option]");
    event.preventDefault(); // the field keeps the focus
    if (option) choose(option);
  });
  field.addEventListener("keydown", (event) => {
    if (list.hidden) return;
    const options = Array.from(list.children);
    const at = options.findIndex((one) => one.id === field.getAttribute("aria-activedescendant"));
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      const next = options[(at + step + options.length + (at < 0 && step < 0 ? 1 : 0)) % options.length];
      options.forEach((one) => one.setAttribute("aria-selected", String(one === next)));
      field.setAttribute("aria-activedescendant", next.id);
    } else if (event.key === "Enter" && at >= 0) {
      event.preventDefault();
      choose(options[at]);
    } else if (event.key === "Escape") {
      event.preventDefault();
      show([]);
    }
  });
})();
