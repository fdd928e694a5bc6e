// Composers and their drafts (drafts.js): each change of a composer is kept, and one that comes into the page shows what
// was kept, its words, choices and pictures (composer.js).
"use strict";

const BESIDE = ["page", "open", "at", "media", "parts", "box"]; // in a draft beside its fields
const HIDDEN = ["key", "language"]; // hidden fields in a draft: a form leaves them as they are when it is reset
const awaited = new WeakMap(); // a composer: what its draft has for fields that are about to come

function composers() {
  return Array.from(document.querySelectorAll("form[data-draft]"));
}

function composerAt(place) {
  return composers().find((form) => form.dataset.draft === place);
}

function isEditor(form) {
  return form.dataset.draft.startsWith("edit");
}

// The names of what its writer sets. The rest says where a post goes.
function fieldsOf(form) {
  const fields = Array.from(form.elements).filter(({ name, type }) => name && type !== "file" && (type !== "hidden" || HIDDEN.includes(name)));
  return [...new Set(fields.filter((field) => !field.closest("ol.media, .files")).map(({ name }) => name))];
}

// Sets a field, if it takes this value.
function fill(field, value) {
  if (typeof value === "boolean") field.checked = value;
  else if (field.type !== "radio") field.value = value; // one alone, which is no choice
  const isSaid = field.type === "checkbox" ? field.checked : field.value;
  const place = field.matches?.("input, textarea") && field.closest("details.extra"); // radio buttons are a list
  if (isSaid && place) place.open = true;
  return typeof value === "boolean" || field.value === value;
}

function fillComposer(form, draft) {
  for (const name of HIDDEN) if (form.elements[name]) form.dataset[name] ??= form.elements[name].value; // of its own
  const values = Object.entries(draft).filter(([name, value]) => !BESIDE.includes(name) && ["string", "boolean"].includes(typeof value));
  const rest = values.filter(([name, value]) => (form.elements[name] ? !fill(form.elements[name], value) : value));
  const poll = form.querySelector("details.polled[hx-get]");
  const isComing = poll && !form.elements.option_1 && rest.some(([name]) => name.startsWith("option_"));
  awaited.delete(form);
  form.classList.toggle("awaiting", isComing);
  if (isComing) {
    awaited.set(form, Object.fromEntries(rest));
    htmx.process(poll); // it asks for its fields as soon as it is open
    poll.open = true;
  }
  if (Array.isArray(draft.media)) putPictures(form, draft.media);
  count(form.elements.text);
  stretch(form);
  nameSending(form);
  if (isComing || !rest.some(([name]) => !name.startsWith("poll_"))) return; // a poll without answers is none
  say(toast.dataset.lost);
  form.dispatchEvent(new Event("attached", { bubbles: true })); // what is left is kept
}

// A post with a time is scheduled, not published.
function nameSending(form) {
  const send = form.querySelector("[data-later]");
  if (!send) return;
  send.dataset.now ??= send.textContent;
  send.textContent = form.elements.publish_at.value ? send.dataset.later : send.dataset.now;
}

// It is one row until it is used, or has the height of its draft (_composer.html).
function openRow(form) {
  form.closest("form.one-row")?.classList.add("open");
}
function letGrow(form) {
  form?.style.removeProperty("height");
  form?.classList.remove("awaiting");
}

// Show the draft that was written elsewhere; empty the form if that was published or discarded.
function renewComposer(form) {
  const draft = readDraft(form.dataset.draft);
  letGrow(form);
  form.reset();
  for (const name of HIDDEN) if (name in form.dataset) form.elements[name].value = form.dataset[name];
  awaited.delete(form);
  if (draft) {
    openRow(form);
    fillComposer(form, draft);
    return;
  }
  putPictures(form, isEditor(form) ? JSON.parse(form.dataset.pictures) : []);
  count(form.elements.text);
  nameSending(form);
}

(() => {
  function isChanged(field) {
    if (field instanceof RadioNodeList) return !Array.from(field).find(({ checked }) => checked)?.defaultChecked;
    const { type, value, defaultValue, checked, defaultChecked } = field;
    return type === "checkbox" ? checked !== defaultChecked : value !== defaultValue;
  }

  function isBegun(form) {
    const pictures = picturesOf(form);
    const isTyped = (field) => field.matches?.("textarea, input:not([type=checkbox], [type=radio], [type=hidden])") && field.value.trim();
    if (!isEditor(form)) return pictures.length > 0 || awaited.has(form) || fieldsOf(form).some((name) => isTyped(form.elements[name]));
    if ("unsaved" in form.dataset || JSON.stringify(pictures) !== form.dataset.pictures) return true;
    return fieldsOf(form).some((name) => isChanged(form.elements[name]));
  }

  function keep(form) {
    const draft = { ...awaited.get(form), page: location.pathname, open: true, at: Date.now(), media: picturesOf(form), box: [innerWidth, form.getBoundingClientRect().height] };
    for (const name of fieldsOf(form)) {
      const field = form.elements[name];
      draft[name] = field.type === "checkbox" ? field.checked : field.value;
    }
    writeDraft(form.dataset.draft, isBegun(form) ? draft : null);
  }

  for (const kind of ["input", "change", "attached"]) {
    document.addEventListener(kind, ({ target }) => {
      if (target.name === "publish_at") nameSending(target.form);
      const form = target.form || target;
      if (form.matches?.("[data-draft]") && form.dataset.known) keep(form);
    });
  }

  // A composer that has just come into the page.
  function restore(form) {
    if (form.dataset.known) return;
    form.dataset.known = "true";
    form.dataset.pictures = JSON.stringify(picturesOf(form));
    const draft = readDraft(form.dataset.draft);
    if (draft) {
      openRow(form);
      fillComposer(form, draft);
      if (form.closest(".slot")) keep(form); // it is open again, and here
    } else letGrow(form);
    const area = form.elements.text;
    if (document.activeElement === area) area.setSelectionRange(area.value.length, area.value.length);
  }

  window.addEventListener("storage", ({ key }) => {
    for (const form of composers()) {
      if (key === draftKey(form.dataset.draft) && !(document.hasFocus() && form.contains(document.activeElement))) renewComposer(form);
    }
  });
  window.addEventListener("pageshow", ({ persisted }) => {
    if (persisted) composers().forEach(renewComposer);
  });

  document.addEventListener("focusin", ({ target }) => {
    openRow(target);
    letGrow(target.closest("form.one-row"));
  });

  // What a press of a tool opens is what one writes next.
  document.addEventListener("toggle", ({ target }) => {
    if (!target.matches("form.composer :is(.extra, .emoji)") || !target.open) return;
    if (target.contains(document.activeElement)) target.querySelector("input, textarea")?.focus();
  }, { capture: true });

  // The fields of a poll have come.
  document.body.addEventListener("htmx:afterSettle", ({ target }) => {
    const form = target.closest("form[data-draft]");
    if (awaited.has(form)) fillComposer(form, awaited.get(form));
  });

  document.body.addEventListener("htmx:afterRequest", ({ target, detail }) => {
    if (target.matches(".polled") && !detail.successful) target.closest("form").classList.remove("awaiting");
  });

  // --- Sending
  document.addEventListener("htmx:confirm", (event) => {
    if (!awaited.has(event.detail.elt)) return;
    event.preventDefault(); // it would go without its poll
    event.stopPropagation();
    say(toast.dataset.offline);
  }, { capture: true });
  document.body.addEventListener("htmx:beforeRequest", ({ detail }) => {
    if (detail.elt.matches("form[data-draft]")) detail.elt.elements.text.readOnly = true;
  });
  document.body.addEventListener("htmx:beforeOnLoad", ({ detail }) => {
    const form = detail.requestConfig.elt;
    const isDone = detail.xhr.status >= 200 && detail.xhr.status < 300;
    if (!form.matches("form[data-draft]") || !isDone) return;
    delete form.dataset.known; // a box that goes with the focus in it fires `change`, which would keep the draft again
    writeDraft(form.dataset.draft, null);
  });
  document.body.addEventListener("htmx:afterRequest", ({ detail }) => {
    const form = detail.requestConfig.elt;
    if (!form.matches("form[data-draft]")) return;
    form.elements.text.readOnly = false;
    if (detail.xhr.status === 401) remember("resumed", form.dataset.draft);
  });

  // --- What comes and goes
  document.body.addEventListener("htmx:load", ({ target }) => {
    if (target.matches("form[data-draft]")) restore(target);
    target.querySelectorAll("form[data-draft]").forEach(restore);
  });
  document.body.addEventListener("htmx:afterSettle", () => composers().forEach(restore));
  composers().forEach(restore);

  const resumed = recall("resumed");
  const form = resumed && composerAt(resumed);
  if (form) form.elements.text.focus();
  if (resumed && !location.pathname.startsWith("/login")) remember("resumed", null);
})();
