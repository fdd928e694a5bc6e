// The pictures of composers: each sent at once with its progress, described, cut, ordered by drag and keys, and shown
// again from a draft. composer.js loads this module where there are any.

const ADDRESS = "/api/v1/me/media";
const STEP = 0.1; // of the focus, by one press of a key
const SIDE = 320; // pixels of what is drawn of a picture
const TRIES = 10; // to send a picture, while the server has no place for it
const PAUSES = [1, 15]; // seconds between two questions how far a video is: the first, and the longest
const waiting = new WeakMap(); // a form that was sent while its pictures were underway: what sends it
const underway = new WeakMap(); // an entry: its file and request

const entries = (form) => Array.from(listOf(form).children);
const field = (entry, name) => entry.querySelector(`[name="${name}"]`);
const idOf = (entry) => field(entry, "media").value;

// Renews all that depends on the pictures as they stand.
function look(form) {
  const all = entries(form);
  form.elements.text.required = !all.length; // pictures need no words
  stretch(form);
  remind(form);
  all.forEach((one, place) => {
    one.setAttribute("aria-label", nameOf(form, one, place, all.length));
    const [before, after] = ["before", "after"].map((way) => one.querySelector(`[data-medium-act="${way}"]`));
    before.disabled = place === 0;
    after.disabled = place === all.length - 1;
    before.hidden = after.hidden = all.length < 2;
  });
  go(form);
}

const saidIn = (form) => form.querySelector(".medium-said");

function filled(text, facts) {
  return text.replace(/\{(\w+)\}/g, (_all, name) => facts[name]);
}

function nameOf(form, entry, place, count) {
  const { picture, video } = saidIn(form).dataset;
  return entry.dataset.kind === "video" ? video : filled(picture, { number: place + 1, count });
}

function remind(form) {
  const isSilent = entries(form).some((one) => !field(one, "description").value.trim());
  form.querySelector(".reminder").hidden = !isSilent;
}

// A change that a draft keeps.
function changed(form) {
  look(form);
  form.dispatchEvent(new Event("attached", { bubbles: true }));
}

function prepare(entry) {
  entry.draggable = true;
  entry.querySelector(".medium-focus").disabled = entry.dataset.kind === "video" && !entry.dataset.preview;
  mark(entry);
}

// The entries that came with the page.
export function begin(form) {
  entries(form).forEach(prepare);
  entries(form).filter((one) => one.dataset.working !== undefined).forEach((one) => follow(form, one));
  look(form);
}

function made(form, id, kind) {
  const entry = form.querySelector("template[data-medium]").content.firstElementChild.cloneNode(true);
  entry.dataset.kind = kind;
  field(entry, "media").value = id;
  field(entry, "focus").value = "0,0";
  return entry;
}

// --- Adding
const kindOf = (file) => file.type.split("/")[0];

export function add(form, files) {
  const list = listOf(form);
  const wanted = files.filter((file) => ["image", "video"].includes(kindOf(file)) || !file.type);
  if (!wanted.length) return say(list.dataset.kind);
  const most = Number(list.dataset.most);
  const kinds = [...entries(form).map((one) => one.dataset.kind), ...wanted.map(kindOf)];
  if (kinds.length > most || (kinds.length > 1 && kinds.includes("video"))) say(list.dataset.many);
  for (const file of wanted) {
    const there = entries(form);
    const isVideo = kindOf(file) === "video";
    if (there.length >= most || (there.length && (isVideo || there[0].dataset.kind === "video"))) break;
    const entry = made(form, "", kindOf(file));
    entry.dataset.key = crypto.randomUUID?.() || `${Date.now()}-${Math.random()}`;
    list.append(entry);
    prepare(entry);
    draw(entry, file);
    send(form, entry, file);
  }
  return look(form);
}

// The picture of a medium that is kept.
function showPreview(entry) {
  if (!entry.dataset.preview) return;
  const picture = Object.assign(new Image(), { src: entry.dataset.preview, alt: "" });
  entry.querySelector(".medium-focus").prepend(picture);
}

async function draw(entry, file) {
  const picture = await createImageBitmap(file).catch(() => null);
  if (!picture) return;
  const scale = Math.min(1, SIDE / Math.max(picture.width, picture.height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(picture.width * scale));
  canvas.height = Math.max(1, Math.round(picture.height * scale));
  // WebKit would lose what the graphics card has drawn when the entry moves.
  canvas.getContext("2d", { willReadFrequently: true }).drawImage(picture, 0, 0, canvas.width, canvas.height);
  picture.close();
  entry.querySelector(".medium-focus").prepend(canvas);
}

// --- Pictures of a draft, which were kept before
export function put(form, pictures) {
  const list = listOf(form);
  const known = new Map(entries(form).map((one) => [idOf(one), one]));
  const isEditor = !form.querySelector("template[data-medium]"); // it has its own, neither more nor fewer
  const shown = pictures.slice(0, list.dataset.most).map((one) => known.get(one.id) || (isEditor ? null : again(form, one)));
  for (const [id, entry] of known) if (id && !isEditor && !shown.includes(entry)) entry.remove();
  list.prepend(...shown.filter(Boolean)); // those that are being sent come after
  shown.forEach((entry, place) => {
    if (!entry) return;
    field(entry, "description").value = pictures[place].description;
    field(entry, "focus").value = pictures[place].focus;
    prepare(entry);
  });
  look(form);
  const anew = shown.filter((entry) => entry && !known.has(idOf(entry)));
  if (anew.length) check(form, anew);
}

function again(form, { id, kind, preview }) {
  const entry = made(form, id, kind);
  entry.dataset.state = "kept";
  entry.dataset.preview = preview;
  showPreview(entry);
  if (kind === "video" && !preview) follow(form, entry);
  return entry;
}

// Asks the server which pictures of a draft can still be published: it removes those that no item used for a day.
// Nothing is done once the form is sent, here or in another tab: the pictures that are not free any more are its own.
async function check(form, asked) {
  const free = await freeOf(form, asked.map(idOf)).catch(() => null);
  const draft = readDraft(form.dataset.draft); // none: another tab published it, and this form is about to be emptied
  if (!free || !draft || !form.isConnected || form.classList.contains("htmx-request")) return;
  const there = asked.filter((entry) => entry.isConnected);
  const lost = there.filter((entry) => !(idOf(entry) in free));
  for (const entry of there) if (!lost.includes(entry)) showCaptions(entry, free[idOf(entry)]);
  if (!lost.length) return;
  lost.forEach((entry) => entry.remove());
  say(listOf(form).dataset.lost);
  changed(form);
}

async function freeOf(form, ids) {
  const answer = await fetch(`${listOf(form).dataset.free}?ids=${ids}`, { headers: credentials() });
  return answer.ok ? answer.json() : null;
}

// --- Sending
function state(form, entry, name, problem = "") {
  entry.dataset.state = name;
  const said = entry.querySelector(".medium-problem");
  said.textContent = problem;
  said.hidden = !problem;
  entry.querySelector('[data-medium-act="again"]').hidden = name !== "failed";
  if (!form.isConnected || !entry.isConnected) return;
  changed(form);
  if (name === "kept") saidIn(form).textContent = filled(saidIn(form).dataset.sent, { name: entry.getAttribute("aria-label") });
}

// The pictures of a page are sent one after another: the server has few places in which it takes them.
function send(form, entry, file) {
  underway.set(entry, { file });
  entry.querySelector("progress").value = 0;
  entry.dataset.state = "sending";
  inTurn("pictures", () => trySending(form, entry, file));
}

// Sends a picture, and again where the server has no place for it just now and says when to come back.
async function trySending(form, entry, file) {
  for (let tries = 1; form.isConnected && entry.isConnected; tries += 1) {
    const request = await sent(entry, file);
    const pause = request.status === 503 && tries < TRIES && Number(request.getResponseHeader("Retry-After"));
    if (!pause) {
      answered(form, entry, request);
      return;
    }
    await new Promise((done) => setTimeout(done, pause * 1000));
  }
}

// The request that has ended, however it did.
function sent(entry, file) {
  const request = new XMLHttpRequest();
  const bar = entry.querySelector("progress");
  underway.set(entry, { request, file });
  request.open("POST", ADDRESS);
  request.responseType = "json";
  for (const [name, value] of Object.entries(credentials())) request.setRequestHeader(name, value);
  request.setRequestHeader("Idempotency-Key", entry.dataset.key);
  request.upload.addEventListener("progress", (event) => (bar.value = (100 * event.loaded) / event.total));
  const body = new FormData();
  body.append("file", file);
  return new Promise((done) => {
    request.addEventListener("loadend", () => done(request));
    request.send(body);
  });
}

function answered(form, entry, request) {
  const texts = listOf(form).dataset;
  if ([201, 202].includes(request.status)) {
    field(entry, "media").value = request.response.id;
    entry.dataset.kind = request.response.type;
    showKept(entry, request.response);
    if (request.status === 202) follow(form, entry);
    state(form, entry, "kept");
    return;
  }
  const said = { 400: texts.broken, 413: texts.large, 415: texts.kind }[request.status];
  if ([401, 403, 429].includes(request.status)) tellStatus(request.status);
  state(form, entry, said ? "refused" : "failed", request.response?.file?.[0] || said || texts.failed);
}

function showKept(entry, medium) {
  entry.dataset.preview = medium.preview_url === medium.url ? "" : medium.preview_url;
  if (medium.type === "video") showPreview(entry);
  prepare(entry);
}

// --- A video is converted after its upload. Its form can be sent meanwhile
async function follow(form, entry) {
  const bar = entry.querySelector("progress");
  const uploading = bar.getAttribute("aria-label");
  entry.dataset.working = "";
  bar.setAttribute("aria-label", bar.dataset.converting);
  let medium = { state: "processing", progress: 0 };
  for (let pause = PAUSES[0]; medium.state === "processing"; pause = Math.min(pause * 1.3, PAUSES[1])) {
    bar.value = medium.progress;
    await new Promise((done) => setTimeout(done, pause * 1000));
    if (!entry.isConnected) return;
    if (document.hidden) continue;
    const answer = await fetch(`${ADDRESS}/${encodeURIComponent(idOf(entry))}`, { headers: credentials() }).catch(() => null);
    if (answer?.status === 404) return; // it was posted, or removed
    if (answer?.ok) medium = await answer.json();
  }
  delete entry.dataset.working;
  bar.setAttribute("aria-label", uploading);
  if (medium.state === "failed") state(form, entry, "refused", medium.failure);
  else {
    showKept(entry, medium);
    changed(form);
  }
}

// Sends a form as soon as all its pictures are kept.
export function wait(form, issue) {
  waiting.set(form, issue);
  form.classList.add("htmx-request");
  go(form);
}

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
  if (act === "uncaption") {
    captioned(entry);
    return;
  }
  if (act === "again") send(form, entry, underway.get(entry).file);
  else if (act === "remove") remove(form, entry);
  else move(entry, act === "after");
  if (act === "again") state(form, entry, "sending");
  else changed(form);
  if (["before", "after"].includes(act)) {
    saidIn(form).textContent = entry.getAttribute("aria-label");
    (button.disabled ? entry.querySelector("[data-medium-act]:not([hidden], :disabled)") : button).focus();
  }
});

function remove(form, entry) {
  const next = entry.nextElementSibling || entry.previousElementSibling;
  underway.get(entry)?.request?.abort();
  entry.remove();
  (next?.querySelector('[data-medium-act="remove"]') || form.elements.text).focus();
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
  changed(dragged.closest("form"));
  dragged = null;
});

// --- The focus: by a press on the picture, or by keys
function focusOf(entry) {
  return field(entry, "focus").value.split(",").map((one) => Number(one) || 0);
}

function mark(entry) {
  const [right, up = 0] = focusOf(entry);
  const { style } = entry.querySelector(".medium-point");
  style.left = `${(right + 1) * 50}%`;
  style.top = `${(1 - up) * 50}%`;
}

function point(entry, x, y) {
  field(entry, "focus").value = [x, y].map((one) => Math.max(-1, Math.min(1, Math.round(one * 100) / 100))).join();
  mark(entry);
  changed(entry.closest("form"));
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
  const [x, y] = focusOf(entry);
  point(entry, x + way[0] * STEP, y + way[1] * STEP);
  const [right, up] = focusOf(entry);
  const facts = { right: Math.round((right + 1) * 50), down: Math.round((1 - up) * 50) };
  saidIn(button.form).textContent = filled(saidIn(button.form).dataset.focus, facts);
});

// --- Captions of a video: kept at once, with it
document.addEventListener("change", ({ target }) => {
  if (!target.matches("[data-captions]") || !target.files.length) return;
  captioned(target.closest(".medium"), target.files[0]);
  target.value = "";
});

// Gives a video these captions; without a file it has none.
async function captioned(entry, file) {
  const place = entry.querySelector(".medium-captions");
  const body = new FormData();
  if (file) body.append("file", file);
  const asked = file ? { method: "PUT", body } : { method: "DELETE" };
  const address = `${ADDRESS}/${encodeURIComponent(idOf(entry))}/captions`;
  const answer = await fetch(address, { ...asked, headers: credentials() }).catch(() => null);
  if (answer?.ok) {
    showCaptions(entry, file ? "there" : "");
    return;
  }
  const said = await answer?.json().catch(() => null);
  const { refused, failed } = place.dataset;
  const output = place.querySelector("output");
  output.textContent = said?.file?.[0] || ([400, 413, 415].includes(answer?.status) ? refused : failed);
  output.className = "errorlist";
}

function showCaptions(entry, url) {
  const place = entry.querySelector(".medium-captions");
  if (!place) return;
  const remove = place.querySelector("button");
  if (document.activeElement === remove && !url) place.querySelector("input").focus();
  remove.hidden = !url;
  const output = place.querySelector("output");
  output.textContent = url ? place.dataset.there : "";
  output.className = "quiet";
}

// --- Descriptions, counted by code points as the server counts them
document.addEventListener("input", ({ target }) => {
  if (!target.matches('.medium [name="description"]')) return;
  const left = target.maxLength - Array.from(target.value).length;
  const said = target.closest(".medium").querySelector(".medium-left");
  said.textContent = left < 200 ? listOf(target.form).dataset.left.replace("{count}", left) : "";
  remind(target.form);
});
