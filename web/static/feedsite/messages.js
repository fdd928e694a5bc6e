// A conversation: it opens where one left off, older messages come as one scrolls up, new ones as they are sent
// (live.js), and Enter sends. Without it older ones are behind a link, and new ones come with the page.
"use strict";

(() => {
  const PAUSE = 300_000; // as items/pages/bubbles.py
  const NEAR = 160; // pixels from the end within which a new message scrolls the page
  const isAtKeyboard = matchMedia("(hover: hover) and (pointer: fine)");

  // --- Enter sends, Shift+Enter begins a line. complete.js comes first: there Enter takes a name.
  document.addEventListener("keydown", (event) => {
    const isPlain = !(event.shiftKey || event.ctrlKey || event.metaKey || event.altKey);
    if (event.key !== "Enter" || !isPlain || !isAtKeyboard.matches) return;
    if (!event.target.matches("form[data-enter] > textarea")) return;
    event.preventDefault();
    event.target.form.requestSubmit();
  });
  if (!talk) return;

  const messages = () => Array.from(talk.querySelectorAll(":scope > .message"));
  const isAtEnd = () => document.documentElement.scrollHeight - scrollY - innerHeight < NEAR;
  const goToEnd = () => scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });

  // Each day is named once, and a face stands with the first of what its sender wrote at once.
  function settle() {
    let before = null;
    const seen = new Set(); // one's own comes with the answer, and is heard of
    for (const one of messages()) {
      if (seen.has(one.id)) {
        one.remove();
        continue;
      }
      seen.add(one.id);
      const isNewDay = before?.dataset.day !== one.dataset.day;
      one.classList.toggle("same-day", !isNewDay);
      const isClose = before?.dataset.sender === one.dataset.sender && new Date(one.dataset.at) - new Date(before.dataset.at) < PAUSE;
      one.classList.toggle("follows", isClose && !isNewDay && !one.querySelector(":scope > .since"));
      before = one;
    }
  }

  async function ask(query) {
    const response = await fetch(`/conversations/${talk.dataset.conversation}?${query}`, {
      headers: { ...credentials(), "HX-Request": "true", "HX-Current-URL": location.href },
    });
    if (!response.ok || response.redirected) return null;
    const answer = document.createElement("template");
    answer.innerHTML = await response.text();
    return answer.content;
  }

  // Puts messages in their places. What is there already stays.
  function put(fresh) {
    for (const one of fresh) {
      if (document.getElementById(one.id)) continue;
      const next = messages().find((other) => Number(other.dataset.id) > Number(one.dataset.id));
      if (next) next.before(one);
      else talk.append(one);
      htmx.process(one);
    }
    settle();
  }

  // --- Older ones, without a jump
  let isLoading = false;
  async function loadOlder(link) {
    if (isLoading) return;
    isLoading = true;
    talk.setAttribute("aria-busy", "true"); // they are not read out
    const answer = await ask(new URL(link.href).searchParams).catch(() => null);
    if (answer) {
      const height = document.documentElement.scrollHeight;
      document.getElementById("older").replaceWith(answer.querySelector("#older"));
      put(answer.querySelectorAll(".message"));
      scrollBy({ top: document.documentElement.scrollHeight - height, behavior: "instant" });
    } else say(toast.dataset.offline);
    talk.removeAttribute("aria-busy");
    isLoading = false;
    watch(Boolean(answer));
  }
  const observer = new IntersectionObserver((seen) => {
    const shown = seen.find(({ isIntersecting }) => isIntersecting);
    if (shown) loadOlder(shown.target);
  }, { rootMargin: "400px 0px 0px" });
  function watch(isOn = true) {
    observer.disconnect();
    const link = document.querySelector("#older > a");
    if (link && isOn) observer.observe(link);
  }
  document.addEventListener("click", (event) => {
    const link = event.target.closest("#older > a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    loadOlder(link);
  });

  // --- New ones, also after a gap. A hidden page asks when it is looked at, which marks them as read.
  let from = null; // the id after which to ask
  const isNewest = !new URLSearchParams(location.search).has("last_id");
  async function renew() {
    if (document.hidden || from === null || !isNewest) return;
    const after = from;
    from = null;
    const answer = await ask(`after=${Math.max(after, 1)}`).catch(() => null);
    if (!answer) {
      from = from === null ? after : Math.min(after, from);
      return;
    }
    const stays = !isAtEnd();
    const fresh = answer.querySelectorAll(".message");
    put(fresh);
    if (fresh.length && !stays) goToEnd();
    document.body.dispatchEvent(new CustomEvent("notified")); // the counts: they are read
    if (fresh.length >= 20) hearMessage(Number(messages().at(-1).dataset.id));
  }
  function hearMessage(after) {
    const last = Number(messages().at(-1)?.dataset.id ?? 1);
    const begin = Math.min(after ?? last, last);
    from = from === null ? begin : Math.min(begin, from);
    return inTurn("messages", renew);
  }
  document.addEventListener("visibilitychange", () => hearMessage());
  document.body.addEventListener("spoken", ({ detail }) => hearMessage(detail.after));

  document.body.addEventListener("messaged", () => {
    settle();
    goToEnd();
    document.querySelector("#message textarea")?.focus({ preventScroll: true });
  });

  // --- Where one left off, else the end
  settle();
  const since = document.getElementById("new");
  if (since) since.scrollIntoView({ block: "start", behavior: "instant" });
  else if (isNewest) goToEnd();
  requestAnimationFrame(() => requestAnimationFrame(() => watch()));
})();
