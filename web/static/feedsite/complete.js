// Names and hashtags complete while they are typed: a list under the text, for keys, mouse and touch.
"use strict";

(() => {
  const PAUSE = 150; // milliseconds without a key, after which is asked
  const KEPT = 200; // answers that are remembered
  // The sign and what was typed after it, just before the caret; no part of a longer word or address.
  const TYPED = /(?:^|[^\p{L}\p{N}_/.@#\uff20\uff03&-]|(?<=[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]))((?:[@\uff20][A-Za-z0-9_-]{1,30})|(?:[#\uff03][\p{L}\p{N}\p{M}_\u200c\u200d\u00b7\u30fb\u05f3\u05f4]{1,100}))$/u;
  const answers = new Map();
  const list = document.createElement("ul");
  list.id = "completions";
  list.className = "completions";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", toast.dataset.completions);

  let area = null; // whose list is open
  let timer, asking;

  function typed(one) {
    if (one.selectionStart !== one.selectionEnd) return "";
    return TYPED.exec(one.value.slice(0, one.selectionStart))?.[1] || "";
  }

  async function ask(word) {
    if (answers.has(word)) return answers.get(word);
    asking?.abort();
    asking = new AbortController();
    const response = await fetch(`/complete?q=${encodeURIComponent(word)}`, {
      headers: { ...credentials(), "HX-Request": "true" },
      signal: asking.signal,
    });
    if (!response.ok || response.redirected) return "";
    const html = await response.text();
    if (answers.size >= KEPT) answers.clear();
    answers.set(word, html);
    return html;
  }

  function close() {
    clearTimeout(timer);
    if (!area) return;
    list.remove();
    area.removeAttribute("aria-controls");
    area.removeAttribute("aria-activedescendant");
    area = null;
  }

  async function look(one) {
    const word = typed(one);
    if (!word) return close();
    const html = await ask(word).catch(() => "");
    if (document.activeElement !== one || typed(one) !== word) return; // typing went on
    const options = document.createElement("template");
    options.innerHTML = html;
    const found = options.content.querySelectorAll("li");
    // A word that is complete already needs no completion.
    if (!found.length || (found.length === 1 && found[0].dataset.text.toLowerCase() === word.toLowerCase())) return close();
    close();
    area = one;
    list.replaceChildren(...found);
    one.after(list);
    list.style.top = `${one.offsetTop + one.offsetHeight}px`;
    one.setAttribute("aria-autocomplete", "list");
    one.setAttribute("aria-controls", list.id);
    choose(0);
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
    const end = one.selectionStart;
    const begin = end - typed(one).length;
    close();
    one.focus({ preventScroll: true });
    const after = /^\s/.test(one.value.slice(end)) ? "" : " ";
    one.setRangeText(option.dataset.text + after, begin, end, "end");
    if (!after) one.setSelectionRange(one.selectionStart + 1, one.selectionStart + 1);
    one.dispatchEvent(new Event("input", { bubbles: true }));
  }

  document.addEventListener("input", ({ target }) => {
    if (!target.matches("textarea[data-limit]")) return;
    clearTimeout(timer);
    if (!typed(target)) close();
    else timer = setTimeout(() => look(target), PAUSE);
  });
  document.addEventListener("keydown", (event) => {
    if (!area || event.target !== area || event.isComposing) return;
    const options = [...list.children];
    const place = options.findIndex((option) => option.getAttribute("aria-selected") === "true");
    const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey && !event.shiftKey;
    if (event.key === "ArrowDown" && isPlain) choose(place + 1);
    else if (event.key === "ArrowUp" && isPlain) choose(place - 1);
    else if ((event.key === "Enter" || event.key === "Tab") && isPlain) put(options[place]);
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
