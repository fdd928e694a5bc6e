// The emoji picker of composers. It asks for a group or a name, and puts what is pressed where the caret was.
"use strict";

(() => {
  const PAUSE = 150; // milliseconds without a key, after which is asked
  let timer;

  async function fill(panel, query) {
    const answer = await fetch(`${panel.dataset.emojiList}?${new URLSearchParams(query)}`, {
      headers: { ...credentials(), "HX-Request": "true" },
    }).catch(() => null);
    if (!answer?.ok || answer.redirected) return;
    const html = await answer.text();
    if ((query.q || "") === panel.querySelector("input").value.trim()) panel.querySelector(".emoji-list").innerHTML = html;
  }

  function put(panel, emoji) {
    const area = panel.closest("form").elements.text;
    const pressed = document.activeElement;
    insertText(area, emoji, area.selectionStart, area.selectionEnd);
    pressed.focus({ preventScroll: true });
  }

  document.addEventListener("toggle", ({ target }) => {
    if (target.matches("details.emoji") && target.open && !target.querySelector(".emoji-list").childElementCount) fill(target, {});
  }, { capture: true });
  document.addEventListener("input", ({ target }) => {
    const panel = target.matches("details.emoji input") && target.closest("details");
    if (!panel) return;
    clearTimeout(timer);
    timer = setTimeout(() => fill(panel, target.value.trim() ? { q: target.value.trim() } : {}), PAUSE);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !event.target.matches("details.emoji input")) return;
    event.preventDefault(); // it would publish the post
    event.target.closest("details").querySelector("[data-emoji]")?.click();
  });
  document.addEventListener("click", ({ target }) => {
    const button = target.closest("details.emoji .emoji-list button");
    if (!button) return;
    const panel = button.closest("details");
    if (button.dataset.group) fill(panel, { group: button.dataset.group });
    else put(panel, button.dataset.emoji);
  });
})();
