// Additions to forms: passwords can be read while they are typed. Forms work without this script.
"use strict";

function hide(button) {
  document.getElementById(button.dataset.reveal).type = "password";
  button.setAttribute("aria-pressed", "false");
}

for (const button of document.querySelectorAll("[data-reveal]")) {
  const field = document.getElementById(button.dataset.reveal);
  button.hidden = false;
  button.addEventListener("click", () => {
    const shown = field.type === "password";
    field.type = shown ? "text" : "password";
    button.setAttribute("aria-pressed", String(shown));
  });
  // Browsers offer to keep what was typed as a password, and keep no other field of the kind.
  field.form.addEventListener("submit", () => hide(button));
}
