// The page of push notifications: asks the browser only after a press.
"use strict";

(() => {
  const box = document.querySelector("[data-push]");
  const part = (name) => box.querySelector(`[data-${name}]`);
  if (box && navigator.serviceWorker && window.PushManager && window.Notification) {
    part("without").hidden = true;
    part("turn-on").hidden = false;
    const button = part("turn-on").querySelector("button");
    button.addEventListener("click", async () => {
      button.disabled = true;
      part("denied").hidden = part("failed").hidden = true;
      try {
        if ((await Notification.requestPermission()) === "granted") {
          await subscribePush(box.dataset.push);
          location.reload();
        } else part("denied").hidden = false;
      } catch {
        part("failed").hidden = false;
      } finally {
        button.disabled = false;
      }
    });
  }

  document.querySelector("[data-push-here]")?.addEventListener("click", () => localStorage.removeItem(PUSH_OF));
})();
