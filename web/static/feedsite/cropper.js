// Pictures of a profile are cut before they are sent: a field with `data-crop="WIDTHxHEIGHT"` opens a dialog in which
// the part is chosen by drag, wheel, pinch, slider or keys. A file that this script cannot cut (an animation, a format
// that the browser does not read) is sent whole, as without JavaScript.
"use strict";

(() => {
  const MOVE = 0.04; // of what is shown, by one press of a key
  const NEARER = 1.1; // by one press of a key
  const WORKING = 1600; // pixels of the copy that is drawn while it is moved
  const QUALITY = 0.95;
  const HEAD = 1 << 18; // bytes in which an animation shows itself

  const dialog = document.getElementById("cropper");
  const stage = dialog.querySelector(".crop-stage");
  const small = dialog.querySelector(".crop-small");
  const slider = dialog.querySelector('[type="range"]');
  const said = dialog.querySelector(".crop-said");
  const kept = new WeakMap(); // a field: the files that it had before the dialog
  let cut = null; // the picture in the dialog: its field, file, pixels, and the part of them that is shown
  let turn = 0; // a later file of a field goes before one that is still read

  // --- Animations, by their bytes
  const letters = (bytes, from, to) => String.fromCharCode(...bytes.subarray(from, to));

  function frames(bytes) { // of a GIF: each has a block of its own, with its delay
    let count = 0;
    for (let at = 0; at < bytes.length - 3 && count < 2; at += 1) {
      if (bytes[at] === 0x21 && bytes[at + 1] === 0xf9 && bytes[at + 2] === 4) count += 1;
    }
    return count;
  }

  async function isAnimated(file) {
    const bytes = new Uint8Array(await file.slice(0, HEAD).arrayBuffer());
    if (letters(bytes, 0, 3) === "GIF") return frames(bytes) > 1 || file.size > HEAD;
    if (letters(bytes, 8, 16) === "WEBPVP8X") return Boolean(bytes[20] & 2);
    if (letters(bytes, 4, 12) === "ftypavis") return true;
    return letters(bytes, 1, 4) === "PNG" && letters(bytes, 37, 41) === "acTL";
  }

  // --- Opening
  async function begin(field) {
    const [file] = field.files;
    const mine = (turn += 1);
    tell(field, "");
    if (!file) return kept.delete(field);
    const pixels = (await isAnimated(file)) ? null : await createImageBitmap(file).catch(() => null);
    if (mine !== turn) return pixels?.close();
    if (!pixels) return tell(field, dialog.dataset.whole);
    open(field, file, pixels);
  }

  function tell(field, words) {
    document.querySelector(`[data-crop-told="${field.name}"]`).textContent = words;
  }

  function open(field, file, pixels) {
    const [width, height] = field.dataset.crop.split("x").map(Number);
    const scale = Math.min(1, WORKING / Math.max(pixels.width, pixels.height));
    const copy = document.createElement("canvas");
    [copy.width, copy.height] = [Math.ceil(pixels.width * scale), Math.ceil(pixels.height * scale)];
    copy.getContext("2d").drawImage(pixels, 0, 0, copy.width, copy.height);
    cut = { field, file, pixels, copy, width, height, zoom: 1, x: 0.5, y: 0.5 };
    dialog.querySelector("h2").textContent = field.labels[0].textContent.trim();
    dialog.classList.toggle("round", width === height);
    [stage.width, stage.height] = [width, height];
    said.textContent = "";
    dialog.showModal();
    draw();
    stage.focus();
  }

  // --- What is shown: a part around (x, y), each from 0 to 1
  function part() {
    const { pixels, width, height, zoom } = cut;
    const high = Math.min(pixels.height, (pixels.width * height) / width) / zoom;
    return { wide: (high * width) / height / pixels.width, high: high / pixels.height };
  }

  function draw() {
    cut.zoom = Math.max(1, Math.min(Number(slider.max) / 100, cut.zoom));
    const { wide, high } = part();
    cut.x = Math.max(wide / 2, Math.min(1 - wide / 2, cut.x));
    cut.y = Math.max(high / 2, Math.min(1 - high / 2, cut.y));
    slider.value = Math.round(cut.zoom * 100);
    paint(stage, cut.copy);
    if (!dialog.matches(".round")) return;
    const pen = small.getContext("2d");
    pen.clearRect(0, 0, small.width, small.height);
    pen.drawImage(stage, 0, 0, small.width, small.height);
  }

  function paint(canvas, source) {
    const { wide, high } = part();
    const [left, top] = [(cut.x - wide / 2) * source.width, (cut.y - high / 2) * source.height];
    const pen = canvas.getContext("2d");
    pen.imageSmoothingQuality = "high";
    pen.clearRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(source, left, top, wide * source.width, high * source.height, 0, 0, canvas.width, canvas.height);
  }

  let drawing = 0;
  function later() {
    drawing ||= requestAnimationFrame(() => {
      drawing = 0;
      if (cut) draw();
    });
  }

  function move(right, down) { // as parts of what is shown
    const { wide, high } = part();
    cut.x += right * wide;
    cut.y += down * high;
    later();
  }

  // Nearer or farther, around a point of the stage that stays where it is: (0, 0) is its middle, 0.5 its edge.
  function zoom(to, [right, down] = [0, 0]) {
    const before = part();
    cut.zoom = Math.max(1, Math.min(Number(slider.max) / 100, to));
    const after = part();
    cut.x += right * (before.wide - after.wide);
    cut.y += down * (before.high - after.high);
    later();
  }

  // --- By pointers: one drags, two pinch
  const pointers = new Map();
  function placeOf({ clientX, clientY }) {
    const box = stage.getBoundingClientRect();
    return [(clientX - box.left) / box.width - 0.5, (clientY - box.top) / box.height - 0.5];
  }
  const middle = ([one, other = one]) => [(one[0] + other[0]) / 2, (one[1] + other[1]) / 2];
  const apart = ([one, other]) => Math.hypot(one[0] - other[0], ((one[1] - other[1]) * stage.height) / stage.width);

  stage.addEventListener("pointerdown", (event) => {
    if (event.button || pointers.size === 2) return;
    stage.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, placeOf(event));
  });
  stage.addEventListener("pointermove", (event) => {
    if (!cut || !pointers.has(event.pointerId)) return;
    const before = [...pointers.values()];
    pointers.set(event.pointerId, placeOf(event));
    const after = [...pointers.values()];
    const [from, to] = [middle(before), middle(after)];
    move(from[0] - to[0], from[1] - to[1]);
    if (after.length === 2) zoom((cut.zoom * apart(after)) / Math.max(apart(before), 0.01), to);
  });
  for (const end of ["pointerup", "pointercancel"]) {
    stage.addEventListener(end, ({ pointerId }) => pointers.delete(pointerId));
  }
  stage.addEventListener("wheel", (event) => {
    event.preventDefault();
    const pixels = event.deltaY * (event.deltaMode ? 20 : 1); // of a mouse that counts lines
    zoom(cut.zoom * Math.exp(-pixels / 500), placeOf(event));
  }, { passive: false });

  // --- By keys and slider
  slider.addEventListener("input", () => zoom(slider.value / 100));
  stage.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const way = { ArrowLeft: [-MOVE, 0], ArrowRight: [MOVE, 0], ArrowUp: [0, -MOVE], ArrowDown: [0, MOVE] }[event.key];
    if (way) move(...way);
    else if (["+", "="].includes(event.key)) zoom(cut.zoom * NEARER);
    else if (event.key === "-") zoom(cut.zoom / NEARER);
    else return;
    event.preventDefault();
    requestAnimationFrame(() => cut && describe());
  });

  function describe() {
    const whole = (share) => Math.round(100 * share);
    const facts = { zoom: whole(cut.zoom), right: whole(cut.x), down: whole(cut.y) };
    said.textContent = said.dataset.words.replace(/\{(\w+)\}/g, (_all, name) => facts[name]);
  }

  // --- Closing
  dialog.querySelector("[data-use]").addEventListener("click", async () => {
    const { field, file, pixels, width, height } = cut;
    const most = Math.min(1, (part().wide * pixels.width) / width); // no more pixels than there are
    [stage.width, stage.height] = [width, height].map((side) => Math.max(1, Math.round(side * most)));
    paint(stage, pixels);
    const kind = file.type === "image/jpeg" ? "image/jpeg" : "image/png"; // which keeps what is transparent
    const result = await new Promise((done) => stage.toBlob(done, kind, QUALITY));
    if (!cut) return; // given up meanwhile
    const files = new DataTransfer();
    files.items.add(new File([result], kind === "image/jpeg" ? "picture.jpg" : "picture.png", { type: kind }));
    kept.set(field, files.files);
    show(field);
    finish();
  });
  dialog.querySelector("[data-cancel]").addEventListener("click", finish);

  // The browser tells of an end later, when the next picture may be in the dialog.
  function finish() {
    const { field, pixels } = cut;
    field.files = kept.get(field) || new DataTransfer().files;
    pixels.close();
    pointers.clear();
    cut = null;
    dialog.close();
    field.focus();
  }
  dialog.addEventListener("close", () => cut && !dialog.open && finish()); // by Escape

  // Shows the chosen part in the form, in the place of the picture of before.
  function show(field) {
    const place = document.querySelector(`[data-crop-shown="${field.name}"]`);
    const shown = document.createElement("canvas");
    [shown.width, shown.height] = [stage.width, stage.height];
    shown.className = place.dataset.class;
    shown.setAttribute("role", "img");
    shown.setAttribute("aria-label", dialog.dataset.chosen);
    shown.getContext("2d").drawImage(stage, 0, 0);
    place.replaceChildren(shown);
    tell(field, dialog.dataset.unsaved);
    const remove = field.form.elements[`remove_${field.name}`];
    if (remove) remove.checked = false;
  }

  for (const field of document.querySelectorAll("input[data-crop]")) {
    field.addEventListener("change", () => begin(field));
  }
})();
