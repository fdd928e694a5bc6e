// Pictures in composers: where they are picked, dropped and pasted. attaching.js sends, shows and orders them; it is
// loaded where there are any. Without JavaScript the composer has plain file fields.
//
// A draft keeps the ids of its pictures: their bytes would fill the browser's store. The server keeps unused pictures
// for a day.
"use strict";

const putting = new WeakMap(); // a composer: the pictures that it is about to show
const coming = new WeakMap(); // a composer: all that is done with it as soon as attaching.js is there

function listOf(form) {
  return form.querySelector("ol.media");
}

// Does `act` with attaching.js, after everything else that waits for it in this composer.
function attaching(form, act) {
  const before = coming.get(form);
  const script = Promise.resolve(before).then(() => prepare(form)).then(() => import(listOf(form).dataset.script));
  const done = script.then(act, () => say(toast.dataset.offline));
  coming.set(form, done);
  done.then(() => coming.get(form) === done && coming.delete(form));
}

// An empty composer comes without what pictures need.
async function prepare(form) {
  const list = listOf(form);
  if (!list.dataset.form) return;
  const answer = await fetch(list.dataset.form, { headers: { ...credentials(), "HX-Request": "true" } });
  if (!answer.ok) throw new Error(answer.statusText);
  list.outerHTML = await answer.text();
}

// The pictures that are kept in a composer, in their order and as a draft keeps them.
function picturesOf(form) {
  if (putting.has(form)) return putting.get(form);
  const entries = Array.from(listOf(form)?.children || []);
  const field = (entry, name) => entry.querySelector(`[name="${name}"]`).value;
  return entries.filter((entry) => field(entry, "media")).map((entry) => ({
    id: field(entry, "media"),
    kind: entry.dataset.kind,
    description: field(entry, "description"),
    focus: field(entry, "focus"),
    preview: entry.dataset.preview,
  }));
}

// Show these pictures in a composer, in the place of those that are kept in it.
function putPictures(form, pictures) {
  if (!listOf(form) || !(pictures.length || listOf(form).children.length)) return;
  putting.set(form, pictures);
  attaching(form, ({ put }) => {
    if (putting.get(form) !== pictures) return; // others came since
    putting.delete(form);
    put(form, pictures);
  });
}

// A text with a title may be longer.
function stretch(form) {
  const { text, title } = form.elements;
  if (!title?.dataset.limit) return;
  text.dataset.short ??= text.dataset.limit;
  text.dataset.limit = title.value.trim() && !listOf(form).children.length ? title.dataset.limit : text.dataset.short;
  count(text);
}

(() => {
  const isComposer = (form) => Boolean(form?.matches?.("form.composer") && listOf(form));
  const takesFiles = (form) => isComposer(form) && Boolean(form.querySelector("[data-pick]")); // an editor takes none

  // --- A composer that has come into the page
  function begin(form) {
    if (form.dataset.attaching) return;
    form.dataset.attaching = "true";
    form.removeAttribute("enctype");
    form.querySelector(".files")?.remove();
    form.querySelectorAll(".keep").forEach((one) => one.remove());
    if (takesFiles(form)) form.querySelector(".pick").hidden = false;
    const isEmpty = !listOf(form).children.length;
    form.elements.text.required = isEmpty; // pictures need no words
    stretch(form);
    if (!isEmpty) attaching(form, (script) => script.begin(form));
  }

  function add(form, files) {
    const some = Array.from(files); // a field's own list is empty when the script has come
    if (some.length) attaching(form, (script) => script.add(form, some));
  }

  // --- Sending: a form with pictures goes as soon as all are kept
  document.body.addEventListener("htmx:confirm", (event) => {
    const form = event.detail.elt;
    if (!isComposer(form)) return;
    const isKept = Array.from(listOf(form).children).every((one) => one.dataset.state === "kept");
    if (isKept && !coming.has(form)) return;
    event.preventDefault();
    attaching(form, ({ wait }) => wait(form, () => event.detail.issueRequest(true)));
  });

  // --- Picking, dropping, pasting
  document.addEventListener("change", ({ target }) => {
    if (!target.matches("[data-pick]")) return;
    add(target.form, target.files);
    target.value = "";
  });

  const carriesFiles = (event) => Array.from(event.dataTransfer?.types || []).includes("Files");
  for (const kind of ["dragenter", "dragover"]) {
    document.addEventListener(kind, (event) => {
      const form = event.target.closest?.("form.composer");
      if (!takesFiles(form) || !carriesFiles(event)) return;
      event.preventDefault();
      form.classList.add("dropping");
    });
  }
  document.addEventListener("dragleave", (event) => {
    const form = event.target.closest?.("form.composer");
    if (form && !form.contains(event.relatedTarget)) form.classList.remove("dropping");
  });
  document.addEventListener("drop", (event) => {
    const form = event.target.closest?.("form.composer");
    form?.classList.remove("dropping");
    if (!takesFiles(form) || !carriesFiles(event)) return;
    event.preventDefault();
    add(form, event.dataTransfer.files);
  });
  // The last part of a path or address.
  function nameIn(path) {
    const name = path.split(/[\\/]/).at(-1).normalize();
    try {
      return decodeURIComponent(name);
    } catch {
      return name;
    }
  }

  // A file manager gives the names or addresses of files with them. Another text is what was copied (of a sheet, a page).
  function isNameOf(text, files) {
    const names = Array.from(files, ({ name }) => nameIn(name));
    const lines = text.split(/[\r\n\0]+/).filter((line) => line && !/^(x-special\/.*|copy|cut)$/.test(line));
    const isMedia = Array.from(files).some(({ type }) => /^(image|video)\//.test(type));
    const isName = (line) => names.some((name) => [name, name.replace(/\.[^.]+$/, "")].includes(nameIn(line)));
    return !lines.length || (isMedia && lines.every(isName));
  }

  document.addEventListener("paste", (event) => {
    const { form } = event.target;
    const files = event.clipboardData?.files;
    if (!takesFiles(form) || !files?.length || !isNameOf(event.clipboardData.getData("text/plain"), files)) return;
    event.preventDefault();
    add(form, files);
  });

  document.addEventListener("input", ({ target }) => {
    if (target.matches('form.composer .extra [name="title"]')) stretch(target.form);
  });

  // --- What comes and goes
  const all = () => document.querySelectorAll("form.composer:has(ol.media)");
  all().forEach(begin);
  document.body.addEventListener("htmx:load", () => all().forEach(begin));
  document.body.addEventListener("htmx:afterSettle", () => all().forEach(begin));
})();
