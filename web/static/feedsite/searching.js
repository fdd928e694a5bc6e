// The page of the search: what was searched of late in this browser, and people's names after `from:`.
"use strict";

(() => {
  const KEPT = 8;
  const PAUSE = 250; // milliseconds without a key before names are asked for
  const field = document.getElementById("q");

  // --- Recent searches: in this browser only, by reader
  const recent = document.getElementById("recent");
  const place = `searches-${recent?.dataset.reader}`;

  function known() {
    try {
      const kept = JSON.parse(localStorage.getItem(place));
      return Array.isArray(kept) ? kept.filter((one) => typeof one === "string") : [];
    } catch {
      return [];
    }
  }

  function keep(searches) {
    try {
      localStorage.setItem(place, JSON.stringify(searches));
    } catch {
      // no room, or the browser keeps nothing
    }
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
      const answer = await fetch(`${location.pathname}?${query}`, { signal: asking.signal });
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
