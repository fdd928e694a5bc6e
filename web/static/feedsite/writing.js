// Composers and their drafts (drafts.js): each change of a composer is kept, and one that comes into the page shows what
// was kept, its words, choices and pictures (composer.js).
"use strict";

const FIELDS = ["text", "title", "warning", "sensitive", "visibility", "publish_at", "key"];

function composers() {
  return Array.from(document.querySelectorAll("form[data-draft]"));
}

function composerAt(place) {
  return composers().find((form) => form.dataset.draft === place);
}

function isEditor(form) {
  return form.dataset.draft.startsWith("edit");
}

function fillComposer(form, draft) {
  if (form.elements.key) form.dataset.key ||= form.elements.key.value; // of its own, under which nothing is published
  for (const name of FIELDS) {
    const field = form.elements[name];
    if (field && typeof draft[name] === "string") field.value = draft[name];
    if (field && typeof draft[name] === "boolean") field.checked = draft[name];
    const isSaid = field?.type === "checkbox" ? field.checked : field?.value;
    const place = field?.closest?.("details.extra"); // the radio buttons of the audience are a list
    if (isSaid && place) place.open = true;
  }
  if (Array.isArray(draft.media)) putPictures(form, draft.media);
  count(form.elements.text);
  nameSending(form);
}

// A post with a time is scheduled, not published.
function nameSending(form) {
  const send = form.querySelector("[data-later]");
  if (!send) return;
  send.dataset.now ??= send.textContent;
  send.textContent = form.elements.publish_at.value ? send.dataset.later : send.dataset.now;
}

(() => {
  function isChanged(field) {
    if (field instanceof RadioNodeList) return !Array.from(field).find(({ checked }) => checked)?.defaultChecked;
    const { type, value, defaultValue, checked, defaultChecked } = field;
    return type === "checkbox" ? checked !== defaultChecked : value !== defaultValue;
  }

  function isBegun(form) {
    const pictures = picturesOf(form);
    if (!isEditor(form)) return Boolean(form.elements.text.value.trim() || pictures.length);
    if ("unsaved" in form.dataset || JSON.stringify(pictures) !== form.dataset.pictures) return true;
    return FIELDS.some((name) => form.elements[name] && isChanged(form.elements[name]));
  }

  function keep(form) {
    const draft = { page: location.pathname, open: true, at: Date.now(), media: picturesOf(form) };
    for (const name of FIELDS) {
      const field = form.elements[name];
      if (field) draft[name] = field.type === "checkbox" ? field.checked : field.value;
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
      openAtHome(form);
      fillComposer(form, draft);
      if (form.closest(".slot")) keep(form); // it is open again, and here
    }
    const area = form.elements.text;
    if (document.activeElement === area) area.setSelectionRange(area.value.length, area.value.length);
  }

  // Show the draft that another tab wrote; empty the form if that tab published or discarded it.
  function renew(form) {
    const draft = readDraft(form.dataset.draft);
    if (draft) {
      openAtHome(form);
      fillComposer(form, draft);
      return;
    }
    form.reset();
    if (form.dataset.key) form.elements.key.value = form.dataset.key; // a form leaves hidden fields as they are
    putPictures(form, isEditor(form) ? JSON.parse(form.dataset.pictures) : []);
    count(form.elements.text);
  }

  window.addEventListener("storage", ({ key }) => {
    for (const form of composers()) {
      if (key === draftKey(form.dataset.draft) && !(document.hasFocus() && form.contains(document.activeElement))) renew(form);
    }
  });
  window.addEventListener("pageshow", ({ persisted }) => {
    if (persisted) composers().forEach(renew);
  });

  // --- The one at home is one row until it is used
  function openAtHome(form, ...more) {
    form.closest("form.at-home")?.classList.add("open", ...more);
  }
  document.addEventListener("focusin", ({ target }) => openAtHome(target, "used"));

  // What a press of a tool opens is what one writes next.
  document.addEventListener("toggle", ({ target }) => {
    if (!target.matches("form.composer .extra") || !target.open) return;
    if (target.contains(document.activeElement)) target.querySelector("input, textarea")?.focus();
  }, { capture: true });

  // --- Sending
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
