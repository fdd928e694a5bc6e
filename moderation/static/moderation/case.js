// Reply templates, and keys of the queue and of a case: j and k go on and back, Enter opens, a letter chooses an act.
"use strict";
(() => {
  document.addEventListener("change", (event) => {
    const words = event.target.id === "id_template" && event.target.selectedOptions[0].dataset.text;
    if (words) document.getElementById("id_text").value = words;
  });

  if (/(?:^|; )keys=off/.test(document.cookie)) return;
  let at = -1;

  const go = (step) => {
    const link = document.querySelector(`[data-step="${step}"]`);
    if (link) return link.click();
    const rows = document.querySelectorAll("#result_list tbody tr");
    if (!rows.length) return;
    at = Math.min(Math.max(at + (step === "next" ? 1 : -1), 0), rows.length - 1);
    const opens = rows[at].querySelector("th a, td a");
    opens?.focus();
    rows[at].scrollIntoView({ block: "nearest" });
  };

  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, select, textarea, [contenteditable]");
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "j") go("next");
    else if (event.key === "k") go("previous");
    else {
      const act = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
      if (!act) return;
      act.focus();
      event.preventDefault();
    }
  });
})();
