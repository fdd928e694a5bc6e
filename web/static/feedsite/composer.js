// Pictures in composers: picked, dropped or pasted, each sent at once with its progress, described, cut, ordered by
// drag and keys. Without JavaScript the composer has plain file fields.
"use strict";

(() => {
  const ADDRESS = "/api/v1/me/media";
  const STEP = 0.1; // of the focus, by one press of a key
  const SIDE = 320; // pixels of what is drawn of a picture
  const waiting = new WeakMap(); // a form that was sent while its pictures were underway: what sends it
  const underway = new WeakMap(); // an entry: its file and request

  const listOf = (form) => form.querySelector("ol.media");
  const entries = (form) => Array.from(listOf(form).children);
  const field = (entry, name) => entry.querySelector(`[name="${name}"]`);
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
    entries(form).forEach(prepare);
    look(form);
  }

  // Renews all that depends on the pictures as they stand.
  function look(form) {
    const all = entries(form);
    form.elements.text.required = !all.length; // pictures need no words
    if (form.elements.title?.value) stretch(form.elements.title);
    form.querySelector(".reminder").hidden = !all.some((one) => !field(one, "description").value.trim());
    all.forEach((one, place) => {
      one.querySelector('[data-medium-act="before"]').disabled = place === 0;
      one.querySelector('[data-medium-act="after"]').disabled = place === all.length - 1;
    });
    go(form);
  }

  function prepare(entry) {
    entry.draggable = true;
    const [x, y] = field(entry, "focus").value.split(",").map(Number);
    point(entry, x || 0, y || 0);
  }

  // --- Adding
  const kindOf = (file) => file.type.split("/")[0];

  function add(form, files) {
    const list = listOf(form);
    const wanted = Array.from(files).filter((file) => ["image", "video"].includes(kindOf(file)) || !file.type);
    if (!wanted.length) return files.length ? say(list.dataset.kind) : null;
    const most = Number(list.dataset.most);
    const kinds = [...entries(form).map((one) => one.dataset.kind), ...wanted.map(kindOf)];
    if (kinds.length > most || (kinds.length > 1 && kinds.includes("video"))) say(list.dataset.many);
    for (const file of wanted) {
      const there = entries(form);
      const isVideo = kindOf(file) === "video";
      if (there.length >= most || (there.length && (isVideo || there[0].dataset.kind === "video"))) break;
      const entry = form.querySelector("template[data-medium]").content.firstElementChild.cloneNode(true);
      entry.dataset.kind = kindOf(file);
      entry.dataset.key = crypto.randomUUID?.() || `${Date.now()}-${Math.random()}`;
      list.append(entry);
      prepare(entry);
      draw(entry, file);
      send(form, entry, file);
    }
    look(form);
  }

  async function draw(entry, file) {
    const picture = await createImageBitmap(file).catch(() => null);
    if (!picture) return;
    const scale = Math.min(1, SIDE / Math.max(picture.width, picture.height));
    const canvas = document.createElement("canvas");
    canvas.width = Math.max(1, Math.round(picture.width * scale));
    canvas.height = Math.max(1, Math.round(picture.height * scale));
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    picture.close();
    entry.querySelector(".medium-focus").prepend(canvas);
  }

  // --- Sending
  function state(form, entry, name, problem = "") {
    entry.dataset.state = name;
    const said = entry.querySelector(".medium-problem");
    said.textContent = problem;
    said.hidden = !problem;
    entry.querySelector('[data-medium-act="again"]').hidden = name !== "failed";
    if (form.isConnected) look(form);
  }

  function send(form, entry, file) {
    const request = new XMLHttpRequest();
    const bar = entry.querySelector("progress");
    const texts = listOf(form).dataset;
    underway.set(entry, { request, file });
    request.open("POST", ADDRESS);
    request.responseType = "json";
    for (const [name, value] of Object.entries(credentials())) request.setRequestHeader(name, value);
    request.setRequestHeader("Idempotency-Key", entry.dataset.key);
    request.upload.addEventListener("progress", (event) => (bar.value = (100 * event.loaded) / event.total));
    request.addEventListener("load", () => {
      if (request.status === 201) {
        field(entry, "media").value = request.response.id;
        entry.dataset.kind = request.response.type;
        return state(form, entry, "kept");
      }
      const said = { 400: texts.broken, 413: texts.large, 415: texts.kind };
      return state(form, entry, said[request.status] ? "refused" : "failed", said[request.status] || texts.failed);
    });
    request.addEventListener("error", () => state(form, entry, "failed", texts.failed));
    const body = new FormData();
    body.append("file", file);
    bar.value = 0;
    entry.dataset.state = "sending";
    request.send(body);
  }

  // A form that waits for its pictures goes as soon as all are kept.
  function go(form) {
    const issue = waiting.get(form);
    if (!issue) return;
    const states = entries(form).map((one) => one.dataset.state);
    if (states.includes("sending")) return;
    waiting.delete(form);
    form.classList.remove("htmx-request");
    if (states.every((one) => one === "kept")) issue();
    else say(listOf(form).dataset.unsent);
  }

  document.body.addEventListener("htmx:confirm", (event) => {
    const form = event.detail.elt;
    if (!isComposer(form) || entries(form).every((one) => one.dataset.state === "kept")) return;
    event.preventDefault();
    waiting.set(form, () => event.detail.issueRequest(true));
    form.classList.add("htmx-request");
    go(form);
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
  document.addEventListener("paste", (event) => {
    const { form } = event.target;
    const files = event.clipboardData?.files;
    if (!takesFiles(form) || !files?.length || event.clipboardData.getData("text/plain")) return;
    event.preventDefault();
    add(form, files);
  });

  // --- Order, by buttons and by drag
  function move(entry, isAfter) {
    const other = isAfter ? entry.nextElementSibling : entry.previousElementSibling;
    if (!other) return;
    if (isAfter) other.after(entry);
    else other.before(entry);
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-medium-act]");
    if (!button) return;
    const [entry, form] = [button.closest(".medium"), button.form];
    const act = button.dataset.mediumAct;
    if (act === "again") send(form, entry, underway.get(entry).file);
    else if (act === "remove") remove(form, entry);
    else move(entry, act === "after");
    look(form);
    if (act === "again") state(form, entry, "sending");
    if (["before", "after"].includes(act)) {
      (button.disabled ? entry.querySelector("[data-medium-act]:not([hidden], :disabled)") : button).focus();
    }
  });

  function remove(form, entry) {
    const next = entry.nextElementSibling || entry.previousElementSibling;
    underway.get(entry)?.request.abort();
    entry.remove();
    (next?.querySelector('[data-medium-act="remove"]') || form.elements.text).focus();
    form.elements.text.dispatchEvent(new Event("input", { bubbles: true }));
  }

  let dragged = null;
  document.addEventListener("dragstart", (event) => {
    dragged = event.target.closest?.(".medium") || null;
    if (!dragged) return;
    event.dataTransfer.effectAllowed = "move";
    event.dataTransfer.setData("text/x-medium", "");
    dragged.classList.add("dragged");
  });
  document.addEventListener("dragover", (event) => {
    const other = event.target.closest?.(".medium");
    if (!dragged || !other || other.parentElement !== dragged.parentElement) return;
    event.preventDefault();
    if (other === dragged) return;
    const isBefore = other.compareDocumentPosition(dragged) & Node.DOCUMENT_POSITION_FOLLOWING;
    if (isBefore) other.before(dragged);
    else other.after(dragged);
  });
  document.addEventListener("dragend", () => {
    if (!dragged) return;
    dragged.classList.remove("dragged");
    look(dragged.closest("form"));
    dragged = null;
  });

  // --- The focus: by a press on the picture, or by keys
  function point(entry, x, y) {
    const [right, up] = [x, y].map((one) => Math.max(-1, Math.min(1, Math.round(one * 100) / 100)));
    field(entry, "focus").value = `${right},${up}`;
    const mark = entry.querySelector(".medium-point");
    mark.style.left = `${(right + 1) * 50}%`;
    mark.style.top = `${(1 - up) * 50}%`;
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest(".medium-focus");
    if (!button || !event.detail) return;
    const place = button.getBoundingClientRect();
    const [x, y] = [(event.clientX - place.left) / place.width, (event.clientY - place.top) / place.height];
    point(button.closest(".medium"), x * 2 - 1, 1 - y * 2);
  });
  document.addEventListener("keydown", (event) => {
    const button = event.target.closest?.(".medium-focus");
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (!button || !way) return;
    event.preventDefault();
    const entry = button.closest(".medium");
    const [x, y] = field(entry, "focus").value.split(",").map(Number);
    point(entry, x + way[0] * STEP, y + way[1] * STEP);
  });

  // --- Descriptions, counted by code points as the server counts them
  document.addEventListener("input", ({ target }) => {
    if (!target.matches('.medium [name="description"]')) return;
    const left = target.maxLength - Array.from(target.value).length;
    const said = target.closest(".medium").querySelector(".medium-left");
    said.textContent = left < 200 ? listOf(target.form).dataset.left.replace("{count}", left) : "";
    target.form.querySelector(".reminder").hidden = entries(target.form).every((one) => field(one, "description").value.trim());
  });

  // --- A text with a title may be longer
  function stretch(title) {
    const area = title.form.elements.text;
    area.dataset.short ??= area.dataset.limit;
    area.dataset.limit = title.value.trim() && !entries(title.form).length ? title.dataset.limit : area.dataset.short;
    count(area);
  }
  document.addEventListener("input", ({ target }) => {
    if (target.matches('form.composer .extra [name="title"]')) stretch(target);
  });

  // --- What comes and goes
  const all = () => document.querySelectorAll("form.composer:has(ol.media)");
  all().forEach(begin);
  document.body.addEventListener("htmx:load", () => all().forEach(begin));
  document.body.addEventListener("htmx:afterSettle", () => all().forEach(begin));
})();
