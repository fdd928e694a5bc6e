// Likes, bookmarks, reposts and follows: shown at once, sent one after the other, taken back with a word where the server refuses.
// The last press counts: what is pressed while an answer is on its way is sent after it.
"use strict";

(() => {
  // By queue and act: the state that was pressed, the one that the server has, how to send one and how to show one.
  const pending = new Map();

  function press(queue, act, wish, { send, show, refused }) {
    const key = `${queue} ${act}`;
    const known = pending.get(key);
    if (known) known.wish = wish;
    else {
      pending.set(key, { queue, wish, known: !wish, show, refused });
      inTurn(queue, () => settle(key, send));
    }
    showPending(queue);
  }

  async function settle(key, send) {
    const act = pending.get(key);
    let answer = () => {};
    try {
      while (act.wish !== act.known) {
        const wish = act.wish;
        answer = await send(wish);
        act.known = wish;
        keepDone(key, wish);
      }
    } catch (refusal) {
      act.show(act.known);
      if (!(refusal instanceof Refusal)) throw refusal;
      if (refusal.html && act.refused) answer = () => act.refused(refusal.html);
    } finally {
      pending.delete(key);
      answer();
      showPending(act.queue);
    }
  }

  // A page that the browser brings back is as old as its last load: what was pressed in this tab since is shown on it.
  const KEPT = 50;
  const STORED = `acts of ${document.body.dataset.reader}`;

  function keepDone(key, wish) {
    const others = (recall(STORED) ?? []).filter(([known]) => known !== key);
    remember(STORED, [...others, [key, wish]].slice(-KEPT));
  }

  function showDone() {
    for (const [key, wish] of recall(STORED) ?? []) {
      const [kind, name, act] = key.split(" ");
      if (kind === "item") showItem(name, act, wish);
      else showPerson(name, wish);
    }
  }
  if (performance.getEntriesByType("navigation")[0]?.type === "back_forward") addEventListener("DOMContentLoaded", showDone);

  // Cards that came meanwhile do not know yet what was pressed.
  function showPending(queue) {
    for (const act of pending.values()) if (!queue || act.queue === queue) act.show(act.wish);
    document.querySelectorAll(".acts, .standing").forEach((one) => {
      const about = one.matches(".acts") ? `item ${one.dataset.item}` : `person ${one.dataset.person}`;
      one.classList.toggle("underway", [...pending.values()].some((act) => act.queue === about));
    });
  }
  document.body.addEventListener("htmx:afterSettle", () => showPending());
  document.body.addEventListener("renewed", () => showPending());

  function other(element, attribute, name) {
    const now = element.getAttribute(attribute);
    element.setAttribute(attribute, element.dataset[name]);
    element.dataset[name] = now;
  }

  // --- Items
  const VERBS = { like: "unlike", repost: "undo-repost", bookmark: "remove-bookmark" };
  const OTHER = Object.fromEntries(Object.entries(VERBS).flatMap(([verb, undo]) => [[verb, undo], [undo, verb]]));

  function forms(id) {
    return document.querySelectorAll(`.acts[data-item="${id}"]`);
  }

  function add(button, change) {
    const number = button.querySelector(".number") || document.createElement("span");
    number.className = "number";
    number.textContent = String(Math.max(Number(number.textContent) + change, 0) || "");
    button.append(number);
  }

  function showAct(button, wish) {
    if ((button.getAttribute("aria-pressed") === "true") === wish) return;
    button.setAttribute("aria-pressed", String(wish));
    const [address, done] = button.getAttribute("formaction").match(/(.*)\/(.*)/).slice(1);
    button.setAttribute("formaction", `${address}/${OTHER[done]}`);
    button.removeAttribute("title");
    if (button.dataset.act !== "bookmark") add(button, wish ? 1 : -1); // bookmarks are not counted
    const icons = { like: ["#like", "#liked"], bookmark: ["#bookmark", "#bookmarked"] }[button.dataset.act];
    if (icons) {
      const use = button.querySelector("use");
      use.setAttribute("href", use.getAttribute("href").replace(/#.*/, icons[Number(wish)]));
    }
  }

  function showItem(id, act, wish) {
    for (const form of forms(id)) {
      const own = form.querySelector(`[data-act="${act}"]`);
      if (own) showAct(own, wish);
    }
  }

  // Only what changes is put into the footers, so that the focus and a composer that is being opened stay.
  function take(id, fresh) {
    if (!fresh) return; // of an item that may not be seen any more nothing is told
    for (const form of forms(id)) {
      for (const theirs of fresh.querySelectorAll("[data-act]")) {
        const own = form.querySelector(`[data-act="${theirs.dataset.act}"]`);
        if (own) {
          for (const { name, value } of theirs.attributes) own.setAttribute(name, value);
          own.innerHTML = theirs.innerHTML;
        } else if (theirs.matches(".replies")) form.querySelector(".pair").append(theirs.cloneNode(true));
      }
      if (!fresh.querySelector(".replies")) form.querySelector(".replies")?.remove();
    }
  }

  // How many liked and reposted it stands on its own page beside the buttons.
  function takeTally(fresh) {
    const own = fresh && document.querySelector(`[data-tally="${fresh.dataset.tally}"]`);
    if (own) own.innerHTML = fresh.innerHTML;
  }

  // The footers that come with a reply.
  document.body.addEventListener("htmx:oobBeforeSwap", ({ detail }) => {
    if (!detail.target.matches(".acts")) return;
    detail.shouldSwap = false;
    take(detail.target.dataset.item, detail.fragment.querySelector(".acts") || detail.fragment);
    showPending(`item ${detail.target.dataset.item}`);
  });

  document.addEventListener("submit", (event) => {
    const button = event.submitter;
    if (!button?.matches(".acts [data-act]")) return;
    event.preventDefault();
    if (button.dataset.act === "repost") openReposting(button);
    else pressAct(button);
  });

  // A repost opens a small menu: what it leads to is no matter of one press.
  const choices = document.getElementById("reposting");

  function openReposting(button) {
    const isOpen = choices.parentElement === button.parentElement && !choices.hidden;
    choices.hidden = isOpen;
    if (isOpen) return;
    const isOn = button.getAttribute("aria-pressed") === "true";
    choices.querySelector("[data-repost] > span").textContent = choices.dataset[isOn ? "repostUndone" : "repostDone"];
    const { item, unquotable } = button.closest(".acts").dataset;
    const quote = choices.querySelector("[data-quote]");
    quote.search = `?quote_of=${item}`;
    quote.hidden = unquotable !== undefined;
    button.after(choices);
    const { offsetLeft, offsetWidth, offsetParent } = button;
    choices.style.insetInlineStart = `${document.dir === "rtl" ? offsetParent.clientWidth - offsetLeft - offsetWidth : offsetLeft}px`;
    choices.querySelector("a, button").focus({ preventScroll: true });
  }

  function closeReposting() {
    const button = choices.previousElementSibling;
    if (choices.contains(document.activeElement)) button.focus({ preventScroll: true });
    choices.hidden = true;
  }
  document.addEventListener("click", ({ target }) => {
    if (choices.hidden || target.closest('[data-act="repost"]')) return;
    const button = choices.previousElementSibling;
    closeReposting();
    if (target.closest("[data-repost]")) pressAct(button);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !choices.contains(event.target)) return;
    event.preventDefault();
    closeReposting();
  });

  function pressAct(button) {
    const id = button.closest(".acts").dataset.item;
    const wish = button.getAttribute("aria-pressed") !== "true";
    const act = button.dataset.act;
    const ways = { true: `/items/${id}/${act}`, false: `/items/${id}/${VERBS[act]}` };
    press(`item ${id}`, act, wish, {
      async send(state) {
        const answer = new DOMParser().parseFromString(await ask(ways[state]), "text/html");
        return () => {
          take(id, answer.querySelector(".acts"));
          takeTally(answer.querySelector(".tally"));
        };
      },
      show: (state) => showItem(id, act, state),
    });
  }

  // The words of a button that is an icon, for who points at it.
  document.addEventListener("pointerover", ({ target }) => {
    const button = target.closest?.(".acts [data-act]:not([title])");
    const words = choices.dataset;
    if (!button) return;
    const isOn = button.getAttribute("aria-pressed") === "true";
    button.title = words[button.dataset.act + (isOn ? "Undone" : "Done")] || button.textContent.trim();
  });

  // --- People
  function standings(name) {
    return document.querySelectorAll(`.standing[data-person="${name}"]`);
  }

  function showFollow(button, wish) {
    if (button.classList.contains("following") === wish) return;
    button.classList.toggle("following", wish);
    button.classList.toggle("quiet-button", wish);
    other(button.form, "action", "otherAction");
    if (button.dataset.otherLabel) other(button, "aria-label", "otherLabel");
  }

  function showPerson(name, wish) {
    for (const one of standings(name)) {
      const button = one.querySelector("form[data-follow] button");
      if (button) showFollow(button, wish);
    }
  }

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.matches("form[data-follow]")) return;
    event.preventDefault();
    const standing = form.closest(".standing");
    const name = standing.dataset.person;
    const wish = !form.querySelector("button").classList.contains("following");
    const ways = { [wish]: form.getAttribute("action"), [!wish]: form.dataset.otherAction };
    const place = (html) => {
      const old = document.getElementById(standing.id);
      if (old) htmx.swap(old, html, { swapStyle: "outerHTML", swapDelay: 0, settleDelay: 20 });
    };
    press(`person ${name}`, "follow", wish, {
      async send(state) {
        const html = await ask(ways[state], { "HX-Target": standing.id });
        return () => {
          place(html);
          document.body.dispatchEvent(new CustomEvent("followed"));
        };
      },
      show: (state) => showPerson(name, state),
      refused: place,
    });
  });

  // A button of following that was just pressed offers to undo that only after the pointer has left and come back.
  document.addEventListener("submit", ({ target }) => {
    const standing = target.closest(".standing");
    if (standing) document.body.dataset.pressed = standing.id;
  });
  document.addEventListener("pointerover", ({ target }) => {
    const pressed = document.body.dataset.pressed;
    if (pressed && target.closest(".standing")?.id !== pressed) delete document.body.dataset.pressed;
  });

  // The second click of a double click, and a key that is held down, are no presses of their own.
  document.addEventListener("click", (event) => {
    if (event.detail > 1 && event.target.closest("button[data-act], form[data-follow] button")) event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    if (event.repeat && event.target.closest("button[data-act], form[data-follow] button")) event.preventDefault();
  });
})();
