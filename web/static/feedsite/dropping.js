// Fields for a file (_drop.html): what is dropped on one is chosen, what was chosen is shown, and while its form is sent
// so is how far it is. cropper.js shows pictures of a profile itself.
"use strict";

(() => {
  const SIDE = 640; // pixels of what is drawn of a picture
  const fieldIn = (zone) => zone.querySelector('[type="file"]');
  const zoneAt = (event) => {
    const carriesFiles = Array.from(event.dataTransfer?.types || []).includes("Files");
    return carriesFiles ? event.target.closest?.("[data-drop]") : null;
  };

  for (const kind of ["dragenter", "dragover"]) {
    document.addEventListener(kind, (event) => {
      const zone = zoneAt(event);
      if (!zone) return;
      event.preventDefault();
      zone.classList.add("dropping");
    });
  }
  document.addEventListener("dragleave", (event) => {
    const zone = zoneAt(event);
    if (zone && !zone.contains(event.relatedTarget)) zone.classList.remove("dropping");
  });
  document.addEventListener("drop", (event) => {
    const zone = zoneAt(event);
    if (!zone) return;
    event.preventDefault();
    zone.classList.remove("dropping");
    const one = new DataTransfer();
    one.items.add(event.dataTransfer.files[0]);
    fieldIn(zone).files = one.files;
    fieldIn(zone).dispatchEvent(new Event("change", { bubbles: true }));
  });

  // --- What was chosen
  function sizeOf({ size }) {
    const [unit, bytes] = size < 1e6 ? ["kilobyte", 1e3] : ["megabyte", 1e6];
    const words = new Intl.NumberFormat(document.documentElement.lang, { style: "unit", unit, maximumFractionDigits: 1 });
    return words.format(size / bytes);
  }

  async function show(zone, file) {
    const shown = zone.querySelector(".drop-shown");
    zone.classList.toggle("chosen", Boolean(file));
    shown.replaceChildren();
    if (!file) return;
    const [name, size] = ["bdi", "small"].map((tag) => document.createElement(tag));
    [name.textContent, size.textContent] = [file.name, sizeOf(file)];
    shown.append(name, size);
    const pixels = await createImageBitmap(file).catch(() => null);
    if (!pixels || !name.isConnected) return;
    const scale = Math.min(1, SIDE / Math.max(pixels.width, pixels.height));
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [pixels.width, pixels.height].map((side) => Math.max(1, Math.round(side * scale)));
    canvas.getContext("2d").drawImage(pixels, 0, 0, canvas.width, canvas.height);
    pixels.close();
    shown.prepend(canvas);
  }

  document.addEventListener("change", ({ target }) => {
    const zone = target.matches('.drop > [type="file"]') && target.parentElement;
    if (zone) show(zone, target.files[0]);
  });

  // --- Sending
  const barOf = (form) => form.querySelector("progress.sending");
  document.addEventListener("submit", (event) => {
    const form = event.target;
    const hasFile = Array.from(form.elements).some((field) => field.closest("[data-drop]") && field.files?.length);
    if (!hasFile || !window.htmx) return;
    event.preventDefault();
    barOf(form).hidden = false;
    htmx.ajax("POST", form.action, { source: form, target: form, swap: "outerHTML", select: `#${form.id}` });
  });
  document.body.addEventListener("htmx:xhr:progress", ({ target, detail }) => {
    if (detail.lengthComputable && target.matches("form:has([data-drop])")) barOf(target).value = detail.loaded / detail.total;
  });
  document.body.addEventListener("htmx:afterRequest", ({ target, detail }) => {
    if (detail.failed && target.matches("form:has([data-drop])")) barOf(target).hidden = true;
  });
})();
