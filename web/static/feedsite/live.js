// Events of the site as they happen: one stream a browser, which its tabs share. Without it pages poll as before.
// The script reconnects by itself: EventSource gives up for good at a 503.
"use strict";

(() => {
  const SLOW_POLL = 180_000; // how often a page asks all the same while it hears what happens
  const SETTLE = 200; // what comes together is asked for once
  const SPREAD = 1_000; // and not every page asks at the same moment
  const RESET_SPREAD = 5_000; // this goes to all pages there are
  const AT_MOST_EVERY = 2_000;
  const HIDDEN = 60_000; // how long a hidden page goes on listening
  const PAUSES = [1_000, 60_000];
  const EVENTS = ["item", "edit", "delete", "live", "notification", "reset"];

  const { stream: address, user } = document.body.dataset;
  if (!address) return; // the site has no stream
  const name = `stream-${user}`;
  const whole = document.querySelector("article.item.whole");
  const watched = document.querySelector("[data-watched]");
  // The page of an item hears of its replies too, that of a conversation of its messages, and the page of a live session hears of it whether its host is
  // followed or not: their streams are their own.
  const shared = !whole && !watched && !talk && "BroadcastChannel" in window && navigator.locks;
  const channel = shared ? new BroadcastChannel(name) : null;

  let source = null;
  let isLive = false;
  let lastId = "";
  let failures = 0;
  let retryTimer, hiddenTimer;
  let polledAt = 0;
  let leaving = null; // while this page waits for the lock, or leads: gives it up

  // --- The stream
  function open() {
    const query = new URLSearchParams();
    if (whole || talk) query.set("item", whole?.dataset.id ?? talk.dataset.conversation);
    if (watched) query.set("session", watched.dataset.watched);
    if (lastId) query.set("last_event_id", lastId);
    source = new EventSource(`${address}?${query}`, { withCredentials: true });
    source.onopen = () => {
      failures = 0;
      setLive(true);
    };
    source.onerror = () => {
      // Its own retries would go to where it was led to, with a ticket that is used up.
      close();
      const pause = Math.min(PAUSES[0] * 2 ** failures++, PAUSES[1]) * (0.5 + Math.random());
      retryTimer = setTimeout(open, pause);
    };
    for (const kind of EVENTS) {
      source.addEventListener(kind, (event) => {
        const news = { kind, id: event.lastEventId, data: JSON.parse(event.data) };
        if (channel) channel.postMessage({ news });
        hear(news);
      });
    }
  }

  function close() {
    clearTimeout(retryTimer);
    if (source) source.close();
    source = null;
    setLive(false);
  }

  function setLive(live) {
    if (channel) channel.postMessage({ live });
    turn(live);
  }

  function turn(live) {
    if (live && !isLive) ask(0);
    if (live && !isLive && talk) speak();
    isLive = live;
  }

  // One of the pages that are looked at listens, and tells the others.
  function join() {
    if (leaving) return;
    if (!channel) {
      leaving = close;
      open();
      return;
    }
    channel.postMessage({ who: true });
    const waiting = new AbortController();
    leaving = () => waiting.abort();
    navigator.locks
      .request(name, { signal: waiting.signal }, () => new Promise((done) => {
        leaving = () => {
          close();
          done();
        };
        open();
      }))
      .catch(() => {}); // given up while it waited
  }

  function leave() {
    if (leaving) leaving();
    leaving = null;
    turn(false);
  }

  if (channel) {
    channel.onmessage = ({ data }) => {
      if (data.who && source) channel.postMessage({ live: isLive });
      if ("live" in data) turn(data.live);
      if (data.news) hear(data.news);
    };
  }

  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiddenTimer);
    if (document.hidden) {
      hiddenTimer = setTimeout(leave, HIDDEN);
    } else {
      if (leaving) ask(0); // what came meanwhile was not asked for
      join();
    }
  });
  window.addEventListener("pagehide", leave);
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) join();
  });

  // --- What it tells
  const waiting = new Map(); // by what is asked for: when, and how

  // Asks at a random moment of `spread`. What comes meanwhile for the same thing is asked for with it, and puts it off
  // no further, so that a page is never later than SETTLE, the spread and AT_MOST_EVERY.
  function soon(about, spread, work, earliest = 0) {
    const at = spread ? Math.max(Date.now() + SETTLE + spread * Math.random(), earliest) : Date.now();
    const known = waiting.get(about);
    if (known) clearTimeout(known.timer);
    const due = known ? Math.min(known.due, at) : at;
    const timer = setTimeout(() => {
      waiting.delete(about);
      work();
    }, due - Date.now());
    waiting.set(about, { due, timer });
  }

  // A conversation asks for its messages after this one; for what it lacks without.
  function speak(after) {
    document.body.dispatchEvent(new CustomEvent("spoken", { detail: { after } }));
  }

  function hear({ kind, id, data }) {
    if (id) lastId = id;
    if (kind === "item" && talk && data.reply_to) speak(Number(data.id) - 1);
    else if (kind === "item" && whole && data.reply_to) soon(`reply ${data.id}`, SPREAD, () => addReply(data.id, data.reply_to));
    else if (kind === "item" && counter()?.id === "news") {
      // An item of a member of an exclusive list is in no home; the list's page asks whether the list has it.
      if (!data.exclusive || "list" in counter().dataset) ask(SPREAD);
    }
    else if (kind === "reset") {
      ask(RESET_SPREAD);
      if (talk) soon("messages", RESET_SPREAD, speak);
    }
    else if (kind === "edit") soon(`edit ${data.id}`, SPREAD, () => renewItem(data.id));
    else if (kind === "delete") {
      removeItem(data.id);
      if (document.querySelector(".pill")) ask(SPREAD);
    } else if (kind === "notification" || kind === "live") {
      const event = new CustomEvent(kind, { detail: data });
      soon(`${kind} ${data.id}`, SPREAD, () => document.body.dispatchEvent(event));
      if (kind === "live" && counter()?.id === "live-news") ask(SPREAD);
    }
  }

  // --- The pill: of posts, or of live sessions
  function counter() {
    return document.querySelector("#news, #live-news, #notice-news");
  }

  function ask(spread) {
    soon("news", spread, () => {
      const news = counter();
      if (news && !document.hidden) htmx.trigger(news, "news");
    }, polledAt + AT_MOST_EVERY);
  }

  document.body.addEventListener("htmx:beforeRequest", (event) => {
    if (event.detail.elt !== counter()) return;
    const byClock = !event.detail.requestConfig.triggeringEvent;
    if (byClock && isLive && Date.now() < polledAt + SLOW_POLL) event.preventDefault();
    else if (!document.hidden) polledAt = Date.now();
  });

  if (!document.hidden) join();
})();
