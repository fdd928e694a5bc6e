// The service worker. It keeps the frame of the pages, the last home of the member who reads in this browser, and a page
// for offline, and shows push messages. `SITE` stands before it (feedsite/public/installing.py).
"use strict";

const FRAME = `frame ${SITE.version}`;
const HOME = `home ${SITE.version}`;
const LIFE = 7 * 86_400_000; // milliseconds for which a home is kept
const NO_PAGES = /^\/(admin|api|media|oauth|static)\b/;
let forgotten = 0; // times that the home was dropped: an answer from before is not kept

addEventListener("install", (event) => {
  const requests = [...SITE.files, SITE.offline].map((path) => new Request(path, { cache: "no-cache", credentials: "omit" }));
  event.waitUntil(caches.open(FRAME).then((cache) => cache.addAll(requests)).then(() => skipWaiting()));
});

addEventListener("activate", (event) => event.waitUntil(takeOver()));

async function takeOver() {
  const old = (await caches.keys()).filter((name) => name !== FRAME && name !== HOME);
  await Promise.all(old.map((name) => caches.delete(name)));
  await registration.navigationPreload?.enable();
  await clients.claim();
}

// --- Pages
addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname, search } = new URL(request.url);
  if (origin !== location.origin) return;
  if (request.mode === "navigate") {
    if (request.method !== "GET") {
      if (pathname === "/logout") event.waitUntil(forget());
    } else if (!NO_PAGES.test(pathname)) event.respondWith(page(event, pathname + search));
  } else if (request.method === "GET" && SITE.files.includes(pathname)) event.respondWith(ofFrame(request));
});

async function ofFrame(request) {
  return (await caches.match(request, { cacheName: FRAME, ignoreVary: true })) ?? fetch(request);
}

async function page(event, path) {
  const before = forgotten;
  let answer;
  try {
    answer = await event.preloadResponse;
    if (!answer || answer.type === "error") answer = await fetch(event.request); // Firefox answers so without a network
  } catch {
    return (path === "/" && (await lastHome())) || caches.match(SITE.offline, { cacheName: FRAME, ignoreVary: true });
  }
  const isPage = answer.ok && answer.headers.get("Content-Type")?.startsWith("text/html");
  if (path === "/" && isPage) event.waitUntil(keep(answer.clone(), before));
  return answer;
}

// --- The last home
async function keep(answer, before) {
  const html = await answer.text();
  const reader = html.match(/<body[^>]* data-reader="(\d+)"/)?.[1];
  if (!reader) return forget();
  const headers = new Headers(answer.headers);
  headers.set("Content-Security-Policy", still(headers.get("Content-Security-Policy") ?? ""));
  headers.set("X-Kept-For", reader);
  headers.set("X-Kept-At", String(Date.now()));
  const cache = await caches.open(HOME);
  if (forgotten === before) await cache.put("/", new Response(asKept(html), { headers }));
}

// A kept page runs no script and sends no form: its buttons would act with a token that is no longer good.
function still(policy) {
  return policy
    .split(";")
    .map((part) => part.trim())
    .filter((part) => !/^(script-src|form-action|connect-src)\b/.test(part))
    .concat("script-src 'none'", "form-action 'none'", "connect-src 'none'")
    .join("; ");
}

function asKept(html) {
  const [words, again] = ["last-home", "again"].map((name) => html.match(RegExp(` data-${name}="([^"]*)"`))?.[1] ?? "");
  return html
    .replace(/("X-CSRFToken": ")[^"]*|(name="csrfmiddlewaretoken" value=")[^"]*/g, "$1$2")
    .replace(/<form class="composer|<div class="acts"|<button [^>]*formaction="[^"]*\/vote"/g, (rests) => rests.replace(" ", " inert "))
    .replace(/<main [^>]*>/, (main) => `${main}<p class="last-home" role="status">${words} <a href="/">${again}</a></p>`);
}

async function lastHome() {
  const kept = await caches.match("/", { cacheName: HOME, ignoreVary: true });
  return kept && Date.now() - Number(kept.headers.get("X-Kept-At")) < LIFE ? kept : undefined;
}

async function forget() {
  forgotten += 1;
  await caches.delete(HOME);
  for (const shown of await registration.getNotifications()) shown.close();
}

// Pages tell who reads them: what was kept for another reader goes.
addEventListener("message", (event) => event.waitUntil(heard(event.data, event.source)));

async function heard({ reader, lang }, page) {
  await keepOffline(lang);
  const kept = await caches.match("/", { cacheName: HOME, ignoreVary: true });
  if (!reader || (kept && kept.headers.get("X-Kept-For") !== reader)) await forget();
  // The home that was there before the worker.
  else if (!kept && page && new URL(page.url).pathname === "/") await keepAnew();
}

// The page for offline, in the language that the reader has now.
async function keepOffline(lang) {
  const kept = await caches.match(SITE.offline, { cacheName: FRAME, ignoreVary: true });
  if (!lang || !kept || (await kept.text()).includes(`<html lang="${lang}"`)) return;
  const answer = await fetch(SITE.offline, { cache: "no-cache" }).catch(() => null);
  if (answer?.ok) await (await caches.open(FRAME)).put(SITE.offline, answer);
}

async function keepAnew() {
  const before = forgotten;
  const answer = await fetch("/").catch(() => null);
  if (answer?.ok) await keep(answer, before);
}

// --- Push messages
addEventListener("push", (event) => {
  const { title, body, icon, url, notification_id: id, preferred_locale: lang } = event.data.json();
  const options = { body, icon, badge: SITE.icon, tag: String(id), lang, dir: "auto", data: { url } };
  event.waitUntil(registration.showNotification(title || SITE.name, options));
});

addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(show(new URL(event.notification.data.url, location.origin)));
});

async function show(address) {
  if (address.origin !== location.origin) return;
  const open = await clients.matchAll({ type: "window" });
  const client = open.find((each) => each.visibilityState === "visible") ?? open[0];
  if (!client) {
    await clients.openWindow(address.href);
    return;
  }
  await client.focus();
  await client.navigate(address.href);
}
