// Names, hashtags and emoji (`:smi`) complete while they are typed: a list under the text, for keys, mouse and touch. Under a search
// the list is of people and hashtags to go to, and after `from:` of names.
"use strict";

// Puts a text in the place of another by the browser's own editing, so that undo takes it back.
function insertText(area, text, begin, end) {
  area.focus({ preventScroll: true });
  area.setSelectionRange(begin, end);
  if (document.execCommand("insertText", false, text)) return;
  area.setRangeText(text, begin, end, "end");
  area.dispatchEvent(new Event("input", { bubbles: true }));
}

(() => {
  const PAUSE = 150; // milliseconds without a key, after which is asked
  const KEPT = 200; // answers that are remembered
  // The sign and what was typed after it, just before the caret; no part of a longer word or address.
  const TYPED = /(?:^|[^\p{L}\p{N}_/.@#\uff20\uff03&-]|(?<=[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]))((?:[@\uff20][A-Za-z0-9_-]{1,30})|(?:[#\uff03][\p{L}\p{N}\p{M}_\u200c\u200d\u00b7\u30fb\u05f3\u05f4]{1,100})|(?::(?:[\p{L}\p{N}_+-]{2,30}|[\u3400-\u9fff]))|(?:(?<!\p{L})\uff1a[A-Za-z0-9_+-]{2,30}))$/u;
  const FIELDS = "textarea[data-limit], input[data-suggests], input[data-names]";
  const NAME = /(?:^|[\s,;，、；])[@＠]?([\p{L}\p{N}_-]{1,30})$/u;
  const SENDER = /(?:^|\s)from[:：][@＠]?([\w-]+)$/i;
  const SOUGHT = /^[@#＠＃]?(?:[\p{L}\p{N}\p{M}_.-]{3,100}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2})$/u;
  const answers = new Map();
  const list = document.createElement("ul");
  list.id = "completions";
  list.className = "completions";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", toast.dataset.completions);

  let area = null; // whose list is open
  let timer, asking;

  // What was typed, and what is asked for it.
  function typed(one) {
    if (one.selectionStart !== one.selectionEnd) return {};
    const before = one.value.slice(0, one.selectionStart);
    if (one.matches("[data-names]")) {
      const name = NAME.exec(before)?.[1];
      return name ? { word: name, query: `@${name}`, end: ", " } : {};
    }
    const word = (one.matches("textarea") ? TYPED : SENDER).exec(before)?.[1];
    if (word) return { word, query: one.matches("textarea") ? word : `@${word}` };
    const sought = one.value.trim();
    return !one.matches("textarea") && SOUGHT.test(sought) ? { word: sought, query: sought, leads: true } : {};
  }

  async function ask(query) {
    if (answers.has(query)) return answers.get(query);
    asking?.abort();
    asking = new AbortController();
    const response = await fetch(`/complete?q=${encodeURIComponent(query)}`, {
      headers: { ...credentials(), "HX-Request": "true" },
      signal: asking.signal,
    });
    if (!response.ok || response.redirected) return "";
    const html = await response.text();
    if (answers.size >= KEPT) answers.clear();
    answers.set(query, html);
    return html;
  }

  function close() {
    clearTimeout(timer);
    if (!area) return;
    list.remove();
    area.removeAttribute("aria-controls");
    area.removeAttribute("aria-activedescendant");
    if (area.role === "combobox") area.ariaExpanded = "false";
    area = null;
  }

  async function look(one) {
    const { word, query, leads } = typed(one);
    if (!word) return close();
    const html = await ask(query).catch(() => "");
    if (document.activeElement !== one || typed(one).query !== query) return; // typing went on
    const options = document.createElement("template");
    options.innerHTML = html;
    const found = options.content.querySelectorAll("li");
    // A word that is complete already needs no completion.
    const isWhole = found.length === 1 && !leads && found[0].dataset.text.toLowerCase() === query.toLowerCase();
    if (!found.length || isWhole) return close();
    close();
    area = one;
    list.replaceChildren(...found);
    one.after(list);
    list.style.top = `${one.offsetTop + one.offsetHeight}px`;
    one.setAttribute("aria-autocomplete", "list");
    one.setAttribute("aria-controls", list.id);
    if (one.role === "combobox") one.ariaExpanded = "true";
    if (!leads) choose(0); // Enter searches, unless one is chosen
  }

  function choose(place) {
    const options = [...list.children];
    const chosen = options[(place + options.length) % options.length];
    for (const option of options) option.setAttribute("aria-selected", String(option === chosen));
    chosen.scrollIntoView({ block: "nearest" });
    area.setAttribute("aria-activedescendant", chosen.id);
  }

  function put(option) {
    const one = area;
    const { word, query, leads, end: gap = " " } = typed(one);
    const end = one.selectionStart;
    const hasSign = gap === ", " && /[@＠]/.test(one.value[end - word.length - 1] ?? "");
    const begin = end - word.length - Number(hasSign);
    close();
    if (leads) return location.assign(option.dataset.address);
    const text = query === word || gap === ", " ? option.dataset.text : option.dataset.text.slice(1);
    const after = /^\s/.test(one.value.slice(end)) ? "" : gap;
    insertText(one, text + after, begin, end);
    if (!after) one.setSelectionRange(one.selectionStart + 1, one.selectionStart + 1);
  }

  document.addEventListener("input", ({ target }) => {
    if (!target.matches(FIELDS)) return;
    clearTimeout(timer);
    if (!typed(target).word) close();
    else timer = setTimeout(() => look(target), PAUSE);
  });
  document.addEventListener("keydown", (event) => {
    if (!area || event.target !== area) return;
    const options = [...list.children];
    const place = options.findIndex((option) => option.getAttribute("aria-selected") === "true");
    const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey && !event.shiftKey;
    if (event.key === "ArrowDown" && isPlain) choose(place + 1);
    else if (event.key === "ArrowUp" && isPlain) choose(Math.max(place, 0) - 1);
    else if ((event.key === "Enter" || event.key === "Tab") && isPlain && place >= 0) put(options[place]);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }, { capture: true });
  // The text keeps the focus while an option is pressed.
  list.addEventListener("pointerdown", (event) => event.preventDefault());
  list.addEventListener("mousedown", (event) => event.preventDefault());
  list.addEventListener("click", (event) => {
    const option = event.target.closest("li");
    if (option && area) put(option);
  });
  document.addEventListener("focusout", ({ target }) => {
    if (target === area) close();
  });
})();
