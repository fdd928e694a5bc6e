// The service worker of members' browsers (worker.js), and their push subscriptions.
"use strict";

const PUSH = "/api/v1/me/push";
const PUSH_OF = "push"; // whose messages this browser takes, and since which log-in

// Tells the worker who reads the page. It forgets what it keeps of another reader.
async function tellWorker(reader) {
  const registration = await navigator.serviceWorker?.getRegistration();
  registration?.active?.postMessage({ reader, lang: document.documentElement.lang });
}

// Takes the reader's push messages in this browser. The browser has been allowed to show them.
async function subscribePush(key) {
  const { pushManager } = await navigator.serviceWorker.ready;
  const options = { userVisibleOnly: true, applicationServerKey: key };
  const subscription = await pushManager.subscribe(options).catch(async () => {
    await (await pushManager.getSubscription())?.unsubscribe(); // the site had another key
    return pushManager.subscribe(options);
  });
  const { endpoint, keys } = subscription.toJSON();
  const headers = { ...credentials(), "Content-Type": "application/json" };
  const answer = await fetch(PUSH, { method: "POST", headers, body: JSON.stringify({ endpoint, keys }) });
  if (!answer.ok) throw new Error(String(answer.status));
  localStorage.setItem(PUSH_OF, JSON.stringify({ reader: document.body.dataset.reader, login: token() }));
}

(() => {
  if (!navigator.serviceWorker) return; // no https
  const { reader = "" } = document.body.dataset;

  // A log-in begins a new session. The same reader's messages go on; another reader has to ask for theirs.
  async function goOn() {
    const of = JSON.parse(localStorage.getItem(PUSH_OF) ?? "{}");
    if (of.reader !== reader || of.login === token() || Notification.permission !== "granted") return;
    const answer = await fetch(PUSH, { headers: credentials() });
    if (answer.ok) await subscribePush((await answer.json()).key);
  }

  addEventListener("load", async () => {
    try {
      if (reader) await navigator.serviceWorker.register("/worker.js").then(() => navigator.serviceWorker.ready);
      await tellWorker(reader);
      if (reader) await goOn();
    } catch {
      // the browser keeps nothing, or has no connection: the next page tries again
    }
  });
})();
