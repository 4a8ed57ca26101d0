// SPDX-License-Identifier: Apache-2.0
// Elements, numbers and times. Whatever a job says becomes text here, never HTML.

/** An element with these attributes and children. A function is a listener, null and false leave an attribute out. */
export function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(key, value);
    else if (value !== null && value !== false && value !== undefined) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return made;
}

/** Give an element this text if it has another. */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Seconds as `45s`, `3m20s`, `2h5m` or `3d4h`. */
export function duration(seconds) {
  let left = Math.max(0, Math.round(seconds));
  const parts = [];
  for (const [unit, size] of [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]]) {
    const count = Math.floor(left / size);
    left -= count * size;
    if (count) parts.push(`${count}${unit}`);
  }
  return parts.slice(0, 2).join("") || "0s";
}

/** How long ago a time was, empty if there is none. */
export function ago(time) {
  const at = Date.parse(time ?? "");
  return Number.isNaN(at) ? "" : duration((Date.now() - at) / 1000);
}

/** How far training is: `251 / 690`. */
export function steps(job) {
  if (job.step === null) return "";
  return job.totalSteps ? `${job.step} / ${job.totalSteps}` : String(job.step);
}

/** A known value with its unit, empty if it is not known. */
export const withUnit = (value, unit) => (value === null || value === undefined || value === "" ? "" : `${value}${unit}`);

/** The phase as a word with a colour. */
export function badge(phase) {
  return el("span", {class: "badge", "data-phase": phase}, phase);
}

/** A table of text: the names of its columns, and rows of cells. */
export function table(caption, columns, rows) {
  return el("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": caption},
    el("table", {}, el("caption", {class: "hidden"}, caption),
      el("thead", {}, el("tr", {}, columns.map((name) => el("th", {scope: "col"}, name)))),
      el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell) => el("td", {}, cell)))))));
}
