// The answers of a poll that is being written: two, and one more at each press. Without JavaScript all fields are there.
"use strict";

(() => {
  const fieldOf = (row) => row.querySelector("input");

  // Those below it move up.
  function drop(row, shown) {
    const after = shown.slice(shown.indexOf(row));
    after.forEach((one, at) => (fieldOf(one).value = after[at + 1] ? fieldOf(after[at + 1]).value : ""));
    shown.at(-1).classList.remove("shown");
    const next = row === shown.at(-1) ? shown.at(-2) : row;
    fieldOf(next).focus();
    fieldOf(next).dispatchEvent(new Event("input", { bubbles: true })); // the draft keeps it
  }

  // A poll without answers is none.
  function remove(poll, rows) {
    rows.forEach((row) => {
      fieldOf(row).value = "";
      row.classList.remove("shown");
    });
    fieldOf(rows[0]).dispatchEvent(new Event("input", { bubbles: true })); // the draft keeps it
    poll.open = false;
    poll.querySelector("summary").focus();
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-option]");
    if (!button) return;
    const rows = Array.from(button.closest(".extra-fields").querySelectorAll(".option"));
    const shown = rows.filter((row) => row.offsetHeight);
    if (button.dataset.option === "none") {
      remove(button.closest(".polled"), rows);
      return;
    }
    if (button.dataset.option === "drop") {
      drop(button.closest(".option"), shown);
      return;
    }
    const next = rows.find((row) => !row.offsetHeight);
    next.classList.add("shown");
    fieldOf(next).focus();
  });
})();
