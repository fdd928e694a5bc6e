// The column beside an error page, which has no other script: asked for where there is room.
"use strict";

(async () => {
  const place = document.getElementById("beside");
  if (!place.offsetParent) return;
  const answer = await fetch(place.dataset.address, { headers: { "HX-Request": "true" } }).catch(() => null);
  if (answer?.ok) place.innerHTML = await answer.text();
  // Boxes that have no room give way: nothing is cut.
  while (place.scrollHeight > place.clientHeight && place.childElementCount > 1) place.lastElementChild.remove();
})();
