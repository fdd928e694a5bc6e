// Requests of the page to the server, beside htmx and through it: with the token of the moment, and one queue for each
// item, so that no older answer comes after a newer one.
"use strict";

const PATIENCE = 30_000; // milliseconds that an answer may take

// The headers by which the page names its reader; none on pages for strangers.
function said() {
  return JSON.parse(document.body.getAttribute("hx-headers") ?? "{}");
}

// A log-in in another tab changes the token, so the one that the page came with may be too old. Strangers have none.
function token() {
  const kept = document.cookie.split("; ").find((cookie) => cookie.startsWith("csrftoken="));
  return kept ? kept.slice("csrftoken=".length) : said()["X-CSRFToken"] ?? "";
}

document.body.addEventListener("htmx:configRequest", ({ detail }) => {
  detail.headers["X-CSRFToken"] = token();
  if ("csrfmiddlewaretoken" in detail.parameters && token()) detail.parameters.csrfmiddlewaretoken = token();
});
// Another user may have logged in meanwhile: the page says whom it was made for (accounts/access.py).
document.addEventListener("submit", ({ target }) => {
  const field = target.querySelector('[name="csrfmiddlewaretoken"]');
  if (!field || !token()) return;
  field.value = token();
  const { reader } = document.body.dataset;
  if (!reader || target.querySelector('[name="page_reader"]')) return;
  const whose = document.createElement("input");
  Object.assign(whose, { type: "hidden", name: "page_reader", value: reader });
  target.append(whose);
}, { capture: true });

// The headers of every request of the page: its token, and the reader whom it was made for.
function credentials() {
  return { ...said(), "X-CSRFToken": token() };
}

// A log-in and a log-out change the token: a page that the browser kept whole from before them is asked for anew, and
// shows nothing until then.
const tokenOfPage = token();
window.addEventListener("pageshow", ({ persisted }) => {
  if (persisted && token() !== tokenOfPage) loadAnew();
});

function loadAnew() {
  document.body.hidden = true;
  location.reload();
}

// Pages tell each other who reads them. After a log-out in another tab the page says so; what it has of one reader is not shown to the next.
const readerOfPage = document.body.dataset.reader ?? "";
addEventListener("storage", ({ key, newValue: reader }) => {
  if (key !== "reader" || !readerOfPage || (reader !== readerOfPage && token() === tokenOfPage)) return;
  if (reader && reader !== readerOfPage) loadAnew();
  else tellLoggedOut(!reader, true);
});
try {
  if (performance.getEntriesByType("navigation")[0]?.type !== "back_forward") localStorage.setItem("reader", readerOfPage);
} catch {
  // the browser keeps nothing
}

// The answer's HTML. A failure is told in words, and thrown.
async function ask(path, headers = {}) {
  let answer;
  try {
    answer = await fetch(path, {
      method: "POST",
      headers: {
        ...credentials(),
        "HX-Request": "true",
        "HX-Current-URL": location.href,
        ...headers,
      },
      keepalive: true, // a press goes out though its page is left
      signal: AbortSignal.timeout(PATIENCE),
    });
  } catch {
    say(toast.dataset.offline);
    throw new Refusal();
  }
  const html = await answer.text().catch(() => "");
  const { said: told } = JSON.parse(answer.headers.get("HX-Trigger") ?? "{}");
  if (told) showToast([told.words], told.problem);
  if (answer.ok) return html;
  if (answer.status !== 422) tellStatus(answer.status);
  throw new Refusal(answer.status === 422 ? html : "");
}

class Refusal extends Error {
  constructor(html = "") {
    super("refused");
    this.html = html; // what the server shows instead
  }
}

// Tell the reader of an answer that failed, by its status.
function tellStatus(status) {
  if (status === 401) {
    tellLoggedOut(true);
    return;
  }
  const words = { 403: "refused", 404: "gone", 413: "large", 429: "often" };
  say(toast.dataset[words[status] || "failed"]);
}

// The session ended under the page: the page says so and stays, with all that is written in it.
function tellLoggedOut(isSo, isElsewhere) {
  const notice = document.getElementById("logged-out");
  if (!notice) return; // a page for strangers
  if (isElsewhere && isSo) notice.querySelector("span").textContent = notice.dataset.elsewhere;
  if (notice.hidden === !isSo) return;
  const link = notice.querySelector("a");
  link.search = new URLSearchParams({ next: location.pathname + location.search });
  notice.hidden = !isSo;
  if (isSo) tellWorker("");
}
document.body.addEventListener("htmx:afterRequest", ({ detail }) => {
  if (detail.successful && isPoll(detail.elt)) tellLoggedOut(false); // logged in again, in another tab
});

const turns = new Map();

// Does `work` after everything else that waits for `key`.
function inTurn(key, work) {
  const turn = (turns.get(key) || Promise.resolve()).then(work, work);
  turns.set(key, turn);
  const end = () => turns.get(key) === turn && turns.delete(key);
  turn.then(end, end);
  return turn;
}
