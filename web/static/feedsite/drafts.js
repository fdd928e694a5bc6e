// Composers: what is written in one is kept in this browser, for each reader and place, until it is published or
// discarded. A place is a new post, a reply to an item, or the edit of one (`data-draft`).
"use strict";

(() => {
  const { reader } = document.body.dataset;
  const FORGOTTEN = 90 * 86_400_000; // milliseconds after which a draft is dropped
  const PREFIX = "draft ";
  const here = () => location.pathname;

  // --- What is kept
  const unkept = new Map(); // what the browser refused to keep, by place: it lives as long as this page
  function keyOf(place) {
    return `${PREFIX}${reader} ${place}`;
  }

  function keysOfDrafts(beginning) {
    try {
      return Object.keys(localStorage).filter((key) => key.startsWith(beginning));
    } catch {
      return []; // the browser keeps nothing
    }
  }

  function parsed(key) {
    try {
      const draft = JSON.parse(localStorage.getItem(key));
      return typeof draft === "object" ? draft : null;
    } catch {
      return null;
    }
  }

  function read(place) {
    return unkept.get(place) || parsed(keyOf(place));
  }

  function write(place, draft) {
    unkept.delete(place);
    try {
      localStorage.removeItem(keyOf(place));
      if (draft) localStorage.setItem(keyOf(place), JSON.stringify(draft));
    } catch {
      if (draft) unkept.set(place, draft); // the browser keeps nothing, or no more
    }
    document.body.toggleAttribute("data-unkept", unkept.size > 0);
  }

  for (const key of keysOfDrafts(PREFIX)) {
    if (!(parsed(key)?.at >= Date.now() - FORGOTTEN)) localStorage.removeItem(key);
  }

  // What would be lost with the page is asked about.
  window.addEventListener("beforeunload", (event) => {
    if (unkept.size) event.preventDefault();
  });

  function composers() {
    return Array.from(document.querySelectorAll("form[data-draft]"));
  }

  function at(place) {
    return composers().find((form) => form.dataset.draft === place);
  }

  const FIELDS = ["text", "title", "warning", "visibility", "key"];

  function isBegun(form) {
    if (!form.dataset.draft.startsWith("edit")) return Boolean(form.elements.text.value.trim());
    const isOther = ({ value, defaultValue, options }) =>
      options ? !Array.from(options).find((option) => option.selected)?.defaultSelected : value !== defaultValue;
    return "unsaved" in form.dataset || FIELDS.some((name) => form.elements[name] && isOther(form.elements[name]));
  }

  function keep(form) {
    const draft = { page: here(), open: true, at: Date.now() };
    for (const name of FIELDS) if (form.elements[name]) draft[name] = form.elements[name].value;
    write(form.dataset.draft, isBegun(form) ? draft : null);
  }

  for (const kind of ["input", "change"]) {
    document.addEventListener(kind, ({ target }) => {
      if (target.form?.matches("[data-draft]")) keep(target.form);
    });
  }

  function fill(form, draft) {
    if (form.elements.key) form.dataset.key ||= form.elements.key.value; // of its own, under which nothing is published
    for (const name of FIELDS) {
      const field = form.elements[name];
      if (field && typeof draft[name] === "string") field.value = draft[name];
      if (field?.value && field.closest("details")) field.closest("details").open = true;
    }
    count(form.elements.text);
  }

  // A composer that has just come into the page.
  function restore(form) {
    if (form.dataset.known) return;
    form.dataset.known = "true";
    const draft = read(form.dataset.draft);
    if (draft) {
      fill(form, draft);
      if (form.closest(".slot")) keep(form); // it is open again, and here
    }
    const area = form.elements.text;
    if (document.activeElement === area) area.setSelectionRange(area.value.length, area.value.length);
  }

  // Show the draft that another tab wrote; empty the form if that tab published or discarded it.
  function renew(form) {
    const draft = read(form.dataset.draft);
    if (draft) fill(form, draft);
    else {
      form.reset();
      if (form.dataset.key) form.elements.key.value = form.dataset.key; // a form leaves hidden fields as they are
      count(form.elements.text);
    }
  }

  window.addEventListener("storage", ({ key }) => {
    for (const form of composers()) {
      if (key === keyOf(form.dataset.draft) && !(document.hasFocus() && form.contains(document.activeElement))) renew(form);
    }
  });
  window.addEventListener("pageshow", ({ persisted }) => {
    if (persisted) composers().forEach(renew);
  });

  // --- Sending
  document.body.addEventListener("htmx:beforeRequest", ({ detail }) => {
    if (detail.elt.matches("form[data-draft]")) detail.elt.elements.text.readOnly = true;
  });
  document.body.addEventListener("htmx:beforeOnLoad", ({ detail }) => {
    const form = detail.requestConfig.elt;
    const isDone = detail.xhr.status >= 200 && detail.xhr.status < 300;
    if (form.matches("form[data-draft]") && isDone) write(form.dataset.draft, null);
  });
  document.body.addEventListener("htmx:afterRequest", ({ detail }) => {
    const form = detail.requestConfig.elt;
    if (!form.matches("form[data-draft]")) return;
    form.elements.text.readOnly = false;
    if (detail.xhr.status === 401) remember("resumed", form.dataset.draft);
  });

  // --- Opening and closing
  function openers(place) {
    const [kind, id] = place.split(":");
    const marks = { reply: `.acts-${id} [data-act="reply"]`, edit: `[data-edit="${id}"]` };
    return marks[kind] ? Array.from(document.querySelectorAll(marks[kind])) : [];
  }

  function close(form) {
    const item = form.closest("article");
    const isEdit = form.dataset.draft.startsWith("edit");
    form.remove();
    const back = item.querySelector(isEdit ? ":scope > .menu > summary" : '[data-act="reply"]');
    (back || item).focus({ preventScroll: true });
    document.body.dispatchEvent(new CustomEvent("closed", { detail: item }));
  }

  function remember(name, value) {
    try {
      if (value) sessionStorage.setItem(name, JSON.stringify(value));
      else sessionStorage.removeItem(name);
    } catch {
      // the browser keeps nothing
    }
  }

  function recall(name) {
    try {
      return JSON.parse(sessionStorage.getItem(name));
    } catch {
      return null;
    }
  }

  // Takes the draft away, and offers it back.
  function discard(form, leaves) {
    const draft = read(form.dataset.draft);
    write(form.dataset.draft, null);
    if (!draft) return;
    const discarded = { reader, place: form.dataset.draft, draft, address: location.pathname + location.search };
    if (leaves) remember("discarded", discarded);
    else offer(discarded);
  }

  function offer({ place, draft, address }) {
    say(toast.dataset.discarded, toast.dataset.undo, () => {
      write(place, draft);
      const form = at(place);
      const [opener] = openers(place);
      if (form) {
        fill(form, draft);
        form.elements.text.focus();
      } else if (opener) opener.click();
      else location.assign(address);
    });
  }

  document.addEventListener("click", (event) => {
    const leave = event.target.closest("[data-discard]");
    if (leave) discard(leave.closest("form"), true);
    const end = event.target.closest("[data-close]");
    const form = end?.closest("form");
    if (!form?.closest(".slot")) return;
    event.preventDefault();
    close(form);
    discard(form, false);
  });

  document.addEventListener("keydown", (event) => {
    // In an input method the key ends the choice of a character.
    if (event.key !== "Escape" || event.isComposing || document.querySelector("details.menu[open]")) return;
    const form = event.target.closest(".slot form[data-draft]");
    if (!form) return;
    event.preventDefault();
    close(form);
    const draft = read(form.dataset.draft);
    if (!draft) return;
    write(form.dataset.draft, { ...draft, open: false });
    say(toast.dataset.kept);
  });

  // A composer that is open stays, with what is in it. The one of an item's own page is that of the item.
  document.body.addEventListener("htmx:beforeRequest", (event) => {
    const link = event.detail.elt.closest('[data-act="reply"], [data-edit]');
    if (!link) return;
    const item = link.closest("article");
    const place = link.dataset.edit ? `edit:${link.dataset.edit}` : `reply:${link.closest(".acts").dataset.item}`;
    const open = item.querySelector(`.slot form[data-draft="${place}"]`) || (item.matches(".whole") && at(place));
    if (!open) return;
    event.preventDefault();
    open.elements.text.focus();
  });

  // Those that were open in this page when it was left: loaded again, or come back to after a log-in.
  const opened = new Set();
  function reopen() {
    for (const key of keysOfDrafts(keyOf(""))) {
      const place = key.slice(keyOf("").length);
      const draft = read(place);
      if (!draft?.open || draft.page !== here() || opened.has(place) || at(place)) continue;
      const [opener] = openers(place);
      if (!opener) continue;
      opened.add(place);
      htmx.ajax("GET", opener.getAttribute("hx-get"), { source: opener });
    }
  }
  document.body.addEventListener("htmx:beforeSwap", ({ detail }) => {
    const link = detail.requestConfig?.elt;
    if (!link?.matches?.('[data-act="reply"], [data-edit]') || detail.requestConfig.triggeringEvent) return;
    detail.serverResponse = detail.serverResponse.replaceAll(" autofocus", ""); // the reader did not ask for it just now
  });

  document.body.addEventListener("htmx:load", ({ target }) => {
    if (target.matches("form[data-draft]")) restore(target);
    target.querySelectorAll("form[data-draft]").forEach(restore);
  });
  document.body.addEventListener("htmx:afterSettle", ({ detail }) => {
    composers().forEach(restore);
    if (detail.requestConfig?.elt.hasAttribute("data-more")) reopen();
  });
  composers().forEach(restore);
  reopen();

  // The page before leaves a discarded draft for this one to offer.
  const discarded = recall("discarded");
  if (discarded) {
    remember("discarded", null);
    if (discarded.reader === reader) offer(discarded); // the session may have ended, and another user come
  }
  const resumed = recall("resumed");
  const form = resumed && at(resumed);
  if (form) form.elements.text.focus();
  if (resumed && !location.pathname.startsWith("/login")) remember("resumed", null);
})();
