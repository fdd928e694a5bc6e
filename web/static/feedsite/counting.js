// Characters left: counted as the server counts them (items/text.py), by code point, a long link as 23.
"use strict";

const countedLength = (() => {
  const LONG = 23;
  // The parts of a link, as in items/links.py and items/text.py.
  const UNSPACED =
    "(?:(?![\\p{scx=Latn}\\p{DI}])(?=[\\p{L}\\p{M}\\p{N}])[\\p{scx=Hani}\\p{scx=Hira}\\p{scx=Kana}\\p{scx=Hang}\\p{scx=Bopo}])";
  const COMPLEX =
    "(?:(?!\\p{Nd})[\\p{sc=Thai}\\p{sc=Laoo}\\p{sc=Mymr}\\p{sc=Khmr}\\p{sc=Tale}\\p{sc=Talu}\\p{sc=Lana}\\p{sc=Tavt}\\p{sc=Ahom}])";
  const WIDE = "(?:(?!\\p{DI})[\\p{L}\\p{M}\\p{N}_])";
  const LETTER = `(?:(?!${UNSPACED})${WIDE})`;
  const LABEL = `(?:${UNSPACED}(?:${WIDE}|-){0,62}|(?!\\p{M})${LETTER}(?:${LETTER}|-){0,62})`;
  const SHAPING = "(?:[\\p{Join_C}\\p{VS}]|(?=\\p{EComp})\\p{DI})";
  const IN_PART =
    "(?:[-!$%'()*+,.0-9:;@A-Z_a-z~\\[\\]]|" +
    `(?![\\0-\\x7f\\u3000\\uff01-\\uff60\\uffe0-\\uffe6])(?!${UNSPACED})(?:[\\p{L}\\p{M}\\p{N}\\p{S}]|${SHAPING}))`;
  const TITLED =
    "(?<=/(?:wiki|w|item|word|keyword|tags?|search|zh|zh-[a-z]{2,4})/" +
    "|[?&](?:q|wd|word|words|keyword|query|search|title|tag)=)";
  const at = (pattern) => new RegExp(pattern, "uy");
  const HOST = at(`${LABEL}(?:\\.${LABEL})*|\\[[0-9A-Fa-f:.]{2,45}\\]`);
  const PORT = at(":[0-9]{1,5}(?![0-9])");
  const PATH = at(
    `(?:/(?!${UNSPACED})|[?#])` +
    `(?:(?:(?<=[/=#])${UNSPACED}|${TITLED}${IN_PART})(?:${IN_PART}|${UNSPACED}|[\\u00b7\\u30fb](?=${UNSPACED}))*|[/?#&=]|${IN_PART})*|/`,
  );
  const IDEOGRAPH = new RegExp(`^${UNSPACED}`, "u");
  // Without ^ Chromium does not find a letter of two units at the end.
  const IN_WORD = new RegExp(`^.?(?!${UNSPACED}|${COMPLEX}|[\\p{Me}\\p{DI}])[\\p{L}\\p{M}\\p{N}_]$`, "su");
  const NEVER = new RegExp(`(?!${SHAPING})[\\p{DI}\\u2800\\u{1d159}]`, "u");
  const WIDE_DOMAIN = new RegExp(
    "^(?:中国|中國|香港|台湾|台灣|澳门|澳門|新加坡|公司|网络|網絡|网址|网站|網站|在线|中文网|移动|集团|政务|公益|商城|我爱你|" +
    "信息|商标|商店|手机|时尚|机构|游戏|娱乐|健康|购物|广东|佛山|한국|닷컴|みんな|コム)",
  );
  const CLOSERS = { ")": "(", "]": "[" };

  function match(pattern, text, begin) {
    pattern.lastIndex = begin;
    return pattern.exec(text)?.[0] ?? "";
  }

  const length = (text) => Array.from(text).length;

  function isHost(name) {
    if (name.startsWith("[")) return URL.canParse?.(`http://${name}`) ?? true; // Safari before 17 does not say
    return length(name) <= 253 && (name.includes(".") || name.toLowerCase() === "localhost");
  }

  function withoutPunctuation(link, least) {
    const open = { ")": 0, "]": 0 };
    for (const letter of link) {
      if (letter in CLOSERS) open[letter] -= 1;
      for (const closer in CLOSERS) if (CLOSERS[closer] === letter) open[closer] += 1;
    }
    let end = link.length;
    for (; end > least; end -= 1) {
      const last = link[end - 1];
      if (open[last] < 0) open[last] += 1;
      else if (!".,;:!?'*&".includes(last)) break;
    }
    return link.slice(0, end);
  }

  // The link in `text` that begins here and has its host `after` its scheme, or "".
  function linkAt(text, begin, after) {
    const isBare = text[after - 1] === ".";
    if (IN_WORD.test(text.slice(Math.max(begin - 2, 0), begin)) || (isBare && begin && "@./-".includes(text[begin - 1]))) return "";
    const start = isBare ? begin : after;
    let host = match(HOST, text, start);
    const labels = host.split(".");
    const last = labels.pop();
    if (IDEOGRAPH.test(last)) host = [...labels, ...(WIDE_DOMAIN.exec(last) ?? [])].join(".");
    if (!isHost(host) || (isBare && host.split(".").length < 3)) return "";
    const port = match(PORT, text, start + host.length);
    const least = start + host.length + port.length;
    const path = match(PATH, text, least);
    const link = withoutPunctuation(text.slice(begin, least + path.length), least - begin);
    return Number(port.slice(1)) > 65_535 || NEVER.test(link) ? "" : link;
  }

  return (text) => {
    let count = length(text);
    const starts = /https?:\/\/|www\./gi;
    for (let start = starts.exec(text); start; start = starts.exec(text)) {
      const link = linkAt(text, start.index, starts.lastIndex);
      if (link) starts.lastIndex = start.index + link.length;
      count -= Math.max(length(link) - LONG, 0);
    }
    return count;
  };
})();

// Shown when the end is near.
const LONGEST = 20_000; // also with long links (items/text.py: ARTICLE_LENGTH)
function count(area) {
  const output = area.form && area.form.querySelector(".count");
  if (!output) return;
  const text = area.value.trim();
  const left = Math.min(Number(area.dataset.limit) - countedLength(text), LONGEST - Array.from(text).length);
  output.querySelector("span").textContent = left < 500 ? String(left) : "";
  const part = Math.min(1 - left / Number(area.dataset.limit), 1) * 100;
  output.querySelector(".filled").setAttribute("stroke-dasharray", `${part} 100`);
  output.classList.toggle("over", left < 0);
}
document.addEventListener("input", (event) => {
  if (event.target.matches("textarea[data-limit]")) count(event.target);
});
document.querySelectorAll("textarea[data-limit]").forEach(count);
document.body.addEventListener("htmx:afterSettle", (event) => {
  event.target.querySelectorAll("textarea[data-limit]").forEach(count);
});
