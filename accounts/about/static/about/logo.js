// The chosen logo, as it will be cut: a square of its middle.
"use strict";
document.addEventListener("change", async ({ target }) => {
  if (target.id !== "id_new_logo") return;
  const shown = target.parentNode.querySelector("canvas");
  const file = target.files[0];
  const picture = file && (await createImageBitmap(file).catch(() => null));
  shown?.remove();
  if (!picture) return;
  const canvas = document.createElement("canvas");
  canvas.className = "logo";
  canvas.width = canvas.height = 192;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", target.dataset.preview);
  const side = Math.min(picture.width, picture.height);
  const [left, top] = [(picture.width - side) / 2, (picture.height - side) / 2];
  const context = canvas.getContext("2d");
  context.imageSmoothingQuality = "high";
  context.drawImage(picture, left, top, side, side, 0, 0, 192, 192);
  target.after(canvas);
});
