// Pictures: a blurred one stands in the place of each until it is loaded, and a press opens it over the page, where
// keys, swipes, pinches and the browser's way back lead on. Everything works without it.
"use strict";

(() => {
  // --- Blurhashes (https://blurha.sh), drawn small and stretched by the browser
  const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz#$%*+,-.:;=?@[]^_{|}~";
  const SIDE = 24; // pixels of the canvas

  const numberOf = (text) => Array.from(text).reduce((sum, digit) => sum * 83 + DIGITS.indexOf(digit), 0);
  const linear = (value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const shown = (value) => {
    const part = Math.max(0, Math.min(1, value));
    return Math.round(255 * (part <= 0.0031308 ? part * 12.92 : 1.055 * part ** (1 / 2.4) - 0.055));
  };

  function draw(hash, canvas) {
    const size = numberOf(hash[0]);
    const [wide, high] = [(size % 9) + 1, Math.floor(size / 9) + 1];
    if (hash.length !== 4 + 2 * wide * high) return false;
    const most = (numberOf(hash[1]) + 1) / 166;
    const average = numberOf(hash.slice(2, 6));
    const colours = [[average >> 16, (average >> 8) & 255, average & 255].map(linear)];
    for (let at = 1; at < wide * high; at += 1) {
      const value = numberOf(hash.slice(4 + at * 2, 6 + at * 2));
      const parts = [Math.floor(value / 361), Math.floor(value / 19) % 19, value % 19];
      colours.push(parts.map((part) => Math.sign(part - 9) * ((part - 9) / 9) ** 2 * most));
    }
    canvas.width = canvas.height = SIDE;
    const pen = canvas.getContext("2d");
    const pixels = pen.createImageData(SIDE, SIDE);
    for (let y = 0; y < SIDE; y += 1) {
      for (let x = 0; x < SIDE; x += 1) {
        const sum = [0, 0, 0];
        for (let row = 0; row < high; row += 1) {
          for (let column = 0; column < wide; column += 1) {
            const weight = Math.cos((Math.PI * x * column) / SIDE) * Math.cos((Math.PI * y * row) / SIDE);
            colours[row * wide + column].forEach((part, channel) => (sum[channel] += part * weight));
          }
        }
        pixels.data.set([...sum.map(shown), 255], 4 * (y * SIDE + x));
      }
    }
    pen.putImageData(pixels, 0, 0);
    return true;
  }

  function lay() {
    for (const ground of document.querySelectorAll("svg.ground[data-hash]")) {
      const { hash } = ground.dataset;
      ground.removeAttribute("data-hash");
      const picture = ground.parentElement.querySelector("img");
      if (picture?.complete && picture.naturalWidth) ground.remove(); // it was loaded before this script
      if (!ground.isConnected || hash.length < 6) continue;
      const canvas = document.createElement("canvas");
      canvas.className = "ground";
      canvas.setAttribute("aria-hidden", "true");
      if (draw(hash, canvas)) ground.after(canvas);
    }
  }
  lay();
  document.body.addEventListener("htmx:afterSettle", lay);

  // A transparent picture lets the page shine through, not the ground.
  document.addEventListener("load", ({ target }) => {
    if (target.matches?.(".picture img")) target.closest("a, .picture").querySelectorAll(".ground").forEach((one) => one.remove());
  }, { capture: true });

  // --- What a reader has unveiled or unfolded stays so where its card comes anew
  const VEILS = "article details.veil, article details.warned";
  const shownOnes = new Set();
  const keyOf = (veil) => `${veil.closest("article").dataset.id} ${veil.className}`;
  document.addEventListener("toggle", ({ target }) => {
    if (!target.matches?.(VEILS)) return;
    if (target.open) shownOnes.add(keyOf(target));
    else shownOnes.delete(keyOf(target));
  }, { capture: true });
  function unveil() {
    for (const veil of document.querySelectorAll(VEILS)) if (shownOnes.has(keyOf(veil))) veil.open = true;
  }
  document.body.addEventListener("htmx:afterSettle", unveil);
  document.body.addEventListener("renewed", unveil);

  // --- A description closes by Esc, and by a press beside it
  document.addEventListener("click", ({ target }) => {
    document.querySelectorAll("details.alt[open]").forEach((one) => !one.contains(target) && (one.open = false));
  });
  document.addEventListener("keydown", (event) => {
    const open = event.key === "Escape" && event.target.closest?.("details.alt[open]");
    if (!open) return;
    event.preventDefault();
    open.open = false;
    open.querySelector("summary").focus();
  });

  // --- Videos: one plays at a time. If the member wants that, they play without sound while they are in view
  document.addEventListener("play", ({ target }) => {
    if (target.paused) return; // another began meanwhile
    for (const other of document.querySelectorAll("video")) if (other !== target) other.pause();
  }, { capture: true });
  const quiet = matchMedia("(prefers-reduced-motion: reduce)");
  if (document.body.dataset.autoplay !== undefined && !quiet.matches) {
    const inView = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        if (isIntersecting && target.paused) {
          target.muted = true;
          target.play().catch(() => {});
        } else if (!isIntersecting) target.pause();
      }
    }, { threshold: 0.6 });
    const observe = () => document.querySelectorAll(".picture video").forEach((video) => inView.observe(video));
    observe();
    document.body.addEventListener("htmx:afterSettle", observe);
  }

  // --- The lightbox
  const SWIPE = 50; // pixels
  const DOUBLE = 400; // milliseconds from one tap to the next
  const FAR = 1.05; // what is hardly enlarged goes back to the whole picture
  const STEP = 1.5; // of a key that zooms
  const PAN = 80; // pixels of a key that moves
  const box = document.getElementById("lightbox");
  const [stage, words] = [box.querySelector(".light-stage"), box.querySelector(".light-words")];
  const place = box.querySelector(".light-place");
  const near = { scale: 1, x: 0, y: 0 }; // how much larger than whole, and how far from the middle of the stage
  const button = (name) => box.querySelector(`[data-do="${name}"]`);
  const onward = document.dir === "rtl" ? -1 : 1; // to which side the next picture is
  let links = [];
  let at = 0;

  // The file for a picture's pixels on this screen. A still one for those who want less motion.
  function fileOf(link) {
    const { width, height, widths = "", moves } = link.dataset;
    const shown = Math.min(1, stage.clientWidth / width, stage.clientHeight / height) * width * devicePixelRatio;
    const isStill = moves !== undefined && quiet.matches;
    if (moves !== undefined && !isStill) return link.href;
    const wide = widths.split(" ").filter(Boolean);
    const found = wide.find((each) => each >= shown) ?? (isStill ? wide.at(-1) : undefined);
    return found ? link.href.replace(/\.\w+$/, `.${found}.webp`) : link.href;
  }

  // A video goes on where it was on the page.
  function showFilm(link) {
    const there = link.parentElement.querySelector("video");
    const film = there.cloneNode(true);
    there.pause();
    Object.assign(film, { autoplay: true, muted: false, currentTime: there.currentTime });
    stage.replaceChildren(film);
    move(1, 0, 0);
  }

  function go(number) {
    if (links.length > 1) show(number);
  }

  function show(number) {
    at = (number + links.length) % links.length;
    const { width, height, words: said, film } = links[at].dataset;
    words.textContent = said;
    if (!said && document.activeElement === button("words")) stage.focus();
    button("words").hidden = !said;
    button("zoom").hidden = film !== undefined;
    button("play").hidden = links[at].dataset.moves === undefined || !quiet.matches;
    box.setAttribute("aria-label", film === undefined ? box.dataset.pictures : box.dataset.film);
    const isOne = links.length === 1;
    place.textContent = isOne ? "" : place.dataset.words.replace("{number}", at + 1).replace("{count}", links.length);
    for (const way of box.querySelectorAll(".light-way")) way.hidden = isOne;
    if (film !== undefined) {
      showFilm(links[at]);
      tell(isTelling);
      return;
    }
    const picture = new Image(width, height);
    picture.alt = links[at].querySelector("img").alt;
    picture.decoding = "async";
    picture.src = fileOf(links[at]);
    // The page's preview stands there until the picture is loaded whole.
    const small = links[at].querySelector("img");
    const before = new Image(width, height);
    before.alt = "";
    before.className = "before";
    before.src = small.currentSrc || small.src;
    picture.addEventListener("load", () => {
      before.remove();
      const next = links[(number + 1 + links.length) % links.length];
      if (next.dataset.film === undefined) new Image().src = fileOf(next); // before it is asked for
    }, { once: true });
    picture.addEventListener("error", () => picture.classList.add("gone"), { once: true });
    stage.replaceChildren(before, picture);
    move(1, 0, 0);
    tell(isTelling);
  }

  let isTelling = false; // descriptions are shown, also those of the pictures that follow
  function tell(isShown) {
    isTelling = isShown;
    words.hidden = !isShown || !words.textContent;
    button("words").setAttribute("aria-expanded", String(isShown));
    move(near.scale, near.x, near.y); // the stage has another size
  }

  const wholeSides = () => {
    const { width, height } = links[at].dataset;
    const part = Math.min(1, stage.clientWidth / width, stage.clientHeight / height);
    return [width * part, height * part];
  };
  const within = (value, most) => Math.max(-most, Math.min(most, value));
  const pixels = () => Math.max(2, links[at].dataset.width / wholeSides()[0]); // the scale that shows each pixel

  function move(scale, x, y) {
    const [width, height] = wholeSides();
    near.scale = scale;
    near.x = within(x, Math.max(0, width * scale - stage.clientWidth) / 2);
    near.y = within(y, Math.max(0, height * scale - stage.clientHeight) / 2);
    stage.style.setProperty("--x", `${near.x}px`);
    stage.style.setProperty("--y", `${near.y}px`);
    stage.style.setProperty("--scale", scale);
    const isNear = scale > 1;
    box.classList.toggle("near", isNear);
    button("zoom").setAttribute("aria-pressed", String(isNear));
    const picture = stage.lastElementChild;
    if (isNear && links[at].dataset.moves === undefined && picture.src !== links[at].href) picture.src = links[at].href;
  }

  // What is under the point stays there.
  function zoomTo(wanted, point) {
    if (button("zoom").hidden) return; // a video
    const scale = Math.max(1, Math.min(2 * pixels(), wanted));
    const { left, top, width, height } = stage.getBoundingClientRect();
    const [x, y] = point ? [point.clientX - left - width / 2, point.clientY - top - height / 2] : [0, 0];
    move(scale, x - ((x - near.x) * scale) / near.scale, y - ((y - near.y) * scale) / near.scale);
  }
  const zoom = (point) => zoomTo(near.scale > 1 ? 1 : pixels(), point);
  window.addEventListener("resize", () => box.open && move(near.scale, near.x, near.y));

  function open(link) {
    links = Array.from(link.closest(".pictures").querySelectorAll("a[data-light]"));
    box.showModal(); // before, because the picture's file goes by the size of the stage
    show(links.indexOf(link));
    history.pushState({ ...history.state, lightbox: true }, "");
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-light]");
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    open(link);
  });

  // However it is closed, its entry of the history goes with it.
  box.addEventListener("close", () => {
    stage.replaceChildren();
    links[at]?.focus({ preventScroll: true });
    if (history.state?.lightbox) history.back();
  });
  window.addEventListener("popstate", () => {
    if (box.open) box.close();
  });
  if (history.state?.lightbox) history.replaceState({ ...history.state, lightbox: false }, "");

  box.addEventListener("click", ({ target }) => {
    const act = target.closest("[data-do]")?.dataset.do;
    if (act === "before") go(at - 1);
    else if (act === "after") go(at + 1);
    else if (act === "zoom") zoom();
    else if (act === "words") tell(!isTelling);
    else if (act === "play") {
      stage.lastElementChild.src = links[at].href;
      button("play").hidden = true;
      button("close").focus();
    }
    else if (act === "close" || target === box || (target === stage && near.scale === 1)) box.close();
  });
  let touched = -Infinity; // when a finger was lifted: not every browser makes a double click of two taps
  stage.addEventListener("dblclick", (event) => {
    if (event.target.matches("img") && event.timeStamp - touched > DOUBLE) zoom(event);
  });
  stage.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && near.scale === 1) return;
    event.preventDefault();
    if (event.ctrlKey) zoomTo(near.scale * Math.exp(-event.deltaY / 100), event); // so browsers tell of a pinched pad
    else move(near.scale, near.x - event.deltaX, near.y - event.deltaY);
  }, { passive: false });
  box.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches("video")) return; // its own keys
    const isFar = near.scale === 1;
    const step = { ArrowLeft: -onward, ArrowRight: onward }[event.key];
    const way = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (way && !isFar) move(near.scale, near.x + way[0] * PAN, near.y + way[1] * PAN);
    else if (step) go(at + step);
    else if (event.key === "Home" && isFar) go(0);
    else if (event.key === "End" && isFar) go(links.length - 1);
    else if (event.key === "+") zoomTo(near.scale * STEP);
    else if (event.key === "-") zoomTo(near.scale / STEP);
    else return;
    event.preventDefault();
  });

  // One finger swipes, two pinch. Near, one finger or the mouse moves the picture.
  const fingers = new Map();
  let begin = null; // where one finger began
  const grip = () => {
    const all = Array.from(fingers.values());
    const middle = (side) => all.reduce((sum, each) => sum + each[side], 0) / all.length;
    const [clientX, clientY] = [middle("clientX"), middle("clientY")];
    return { clientX, clientY, apart: Math.hypot(all[0].clientX - clientX, all[0].clientY - clientY) };
  };
  const hold = () => stage.classList.toggle("held", fingers.size > 0);
  stage.addEventListener("pointerdown", (event) => {
    const isMouse = event.pointerType === "mouse";
    if (isMouse && (event.button || near.scale === 1)) return;
    if (isMouse) event.preventDefault(); // the browser would drag the file
    if (isMouse) stage.setPointerCapture(event.pointerId);
    if (event.isPrimary) fingers.clear(); // one whose lifting was not heard
    fingers.set(event.pointerId, event);
    begin = fingers.size === 1 ? event : null;
    hold();
  });
  stage.addEventListener("pointermove", (event) => {
    if (!fingers.has(event.pointerId)) return;
    const before = grip();
    fingers.set(event.pointerId, event);
    if (fingers.size < 2 && near.scale === 1) return;
    const now = grip();
    move(near.scale, near.x + now.clientX - before.clientX, near.y + now.clientY - before.clientY);
    if (fingers.size === 2 && before.apart) zoomTo((near.scale * now.apart) / before.apart, now);
  });
  const lift = (event) => {
    const isHeld = fingers.delete(event.pointerId);
    hold();
    if (isHeld && !fingers.size && near.scale < FAR) move(1, 0, 0);
    return isHeld;
  };
  stage.addEventListener("pointercancel", (event) => {
    lift(event);
    begin = null;
  });
  let tapped = -Infinity;
  stage.addEventListener("pointerup", (event) => {
    if (!lift(event) || event.pointerType === "mouse") return;
    touched = event.timeStamp;
    if (!begin) return;
    const [right, down] = [event.clientX - begin.clientX, event.clientY - begin.clientY];
    begin = null;
    if (Math.hypot(right, down) < 10 && event.target.matches("img")) {
      const isSecond = event.timeStamp - tapped < DOUBLE;
      tapped = isSecond ? -Infinity : event.timeStamp;
      if (isSecond) zoom(event);
    }
    if (near.scale > 1) return;
    if (Math.abs(right) > SWIPE && Math.abs(right) > 2 * Math.abs(down)) go(at - onward * Math.sign(right));
    else if (Math.abs(down) > 2 * SWIPE && Math.abs(down) > 2 * Math.abs(right)) box.close();
  });
})();
