"use strict";
// Buttons marked data-after-look do nothing for the first half second in which their reader can see them. Without it a
// page that has the reader click twice closes itself, or its window, between the clicks, and the second one lands here.
// The file is loaded before the page's body: no button is there earlier than this.
(() => {
  const LOOK = 500;
  let seenAt = Infinity;

  function look() {
    seenAt = document.visibilityState === "visible" ? performance.now() : Infinity;
  }

  function judge(event) {
    const button = event.target.closest?.("[data-after-look]");
    if (button && performance.now() < seenAt + LOOK) {
      event.preventDefault();
      event.stopImmediatePropagation();
    }
  }

  for (const name of ["focus", "pageshow"]) addEventListener(name, look);
  document.addEventListener("visibilitychange", look);
  document.addEventListener("click", judge, true);
  look();
})();
