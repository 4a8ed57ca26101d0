// SPDX-License-Identifier: Apache-2.0
// All jobs in a table, with a filter. A change of a job changes its row only.
import {ago, badge, duration, el, steps, withUnit, write} from "./dom.js";

const PHASES = ["Pending", "Running", "Restarting", "Suspended", "Succeeded", "Failed"];
const COLUMNS = [
  ["Job", (job) => `${job.namespace}/${job.name}`],
  ["Phase", (job) => PHASES.indexOf(job.phase)],
  ["Progress", (job) => job.percentage ?? -1],
  ["Steps/s", (job) => Number(job.stepsPerSecond ?? -1)],
  ["Time left", (job) => job.secondsLeft ?? -1],
  ["Goodput", (job) => job.goodput ?? -1],
  ["Restarts", (job) => job.restarts],
  ["Age", (job) => -Date.parse(job.created ?? 0)],
];

/** The address of a job. */
const address = (job) => `#/${encodeURIComponent(job.namespace)}/${encodeURIComponent(job.name)}`;
const keyOf = (job) => `${job.namespace}/${job.name}`;

/** The row of a job, and what writes another state into it. */
function rowOf(job) {
  const phase = el("td");
  const bar = el("progress", {max: 100, "aria-label": `progress of ${job.name}`});
  const texts = COLUMNS.map(() => el("span"));
  const made = {
    element: el("tr", {},
      el("th", {scope: "row"}, el("a", {href: address(job)}, job.name), el("small", {}, job.namespace)), phase,
      el("td", {}, bar, texts[2]), texts.slice(3).map((text) => el("td", {class: "number"}, text))),
    update(now) {
      if (made.job?.phase !== now.phase || made.job?.reason !== now.reason) {
        phase.replaceChildren(badge(now.phase), el("small", {}, now.reason ?? ""));
      }
      made.job = now;
      bar.hidden = now.percentage === null;
      if (now.percentage !== null) bar.value = now.percentage;
      write(texts[2], steps(now));
      write(texts[3], withUnit(now.stepsPerSecond, ""));
      write(texts[4], now.secondsLeft === null ? "" : duration(now.secondsLeft));
      write(texts[5], withUnit(now.goodput, " %"));
      write(texts[6], String(now.restarts));
      made.age();
    },
    age: () => write(texts[7], ago(made.job.created)),
  };
  made.update(job);
  return made;
}

/** The view of all jobs. */
export function jobList() {
  const rows = new Map();
  const order = {column: 7, reversed: false};
  const body = el("tbody");
  const count = el("output", {"aria-live": "polite"}, "reading the jobs …");
  const text = el("input", {type: "search", placeholder: "part of a name", input: arrange});
  const namespace = el("select", {change: arrange}, el("option", {value: ""}, "all"));
  const phase = el("select", {change: arrange}, el("option", {value: ""}, "all"), PHASES.map((one) => el("option", {}, one)));
  const heads = COLUMNS.map(([name], at) => el("th", {scope: "col", class: at > 2 ? "number" : null},
    el("button", {type: "button", click: () => sort(at)}, name)));

  function sort(column) {
    order.reversed = order.column === column && !order.reversed;
    order.column = column;
    arrange();
  }

  function isWanted(job) {
    const wanted = text.value.trim().toLowerCase();
    return (!namespace.value || job.namespace === namespace.value) && (!phase.value || job.phase === phase.value)
      && (!wanted || keyOf(job).toLowerCase().includes(wanted));
  }

  /** Put the rows that are wanted in their order. */
  function arrange() {
    const value = COLUMNS[order.column][1];
    const sign = order.reversed ? -1 : 1;
    const wanted = [...rows.values()].filter((row) => isWanted(row.job)).map((row) => [value(row.job), row]);
    wanted.sort(([one, a], [other, b]) => (one < other ? -sign : one > other ? sign : keyOf(a.job) < keyOf(b.job) ? -1 : 1));
    const elements = wanted.map(([, row]) => row.element);
    if (elements.length !== body.children.length || elements.some((one, at) => body.children[at] !== one)) {
      body.replaceChildren(...elements);
    }
    heads.forEach((head, at) => {
      const is = at === order.column ? (order.reversed ? "descending" : "ascending") : null;
      if (is) head.setAttribute("aria-sort", is);
      else head.removeAttribute("aria-sort");
    });
    write(count, rows.size ? `${elements.length} of ${rows.size} jobs` : "no jobs");
  }

  function take({rows: changed, gone}) {
    for (const job of changed) {
      const known = rows.get(keyOf(job));
      if (known) known.update(job);
      else rows.set(keyOf(job), rowOf(job));
    }
    for (const [space, name] of gone) rows.delete(`${space}/${name}`);
    const spaces = [...new Set([...rows.values()].map((row) => row.job.namespace))].sort();
    if (spaces.join() !== [...namespace.options].slice(1).map((one) => one.value).join()) {
      const before = namespace.value;
      namespace.replaceChildren(el("option", {value: ""}, "all"), ...spaces.map((one) => el("option", {}, one)));
      namespace.value = spaces.includes(before) ? before : "";
    }
    arrange();
  }

  const timer = setInterval(() => rows.forEach((row) => row.age()), 10000);
  return {
    title: "Jobs – dtjob",
    source: () => "events/jobs",
    events: {jobs: take},
    close: () => clearInterval(timer),
    element: el("section", {}, el("h1", {}, "Jobs"),
      el("form", {class: "filter", role: "search", submit: (event) => event.preventDefault()},
        el("label", {}, "Name", text), el("label", {}, "Namespace", namespace), el("label", {}, "Phase", phase), count),
      el("div", {class: "scroll"}, el("table", {class: "jobs"}, el("caption", {class: "hidden"}, "Jobs"),
        el("thead", {}, el("tr", {}, heads)), body))),
  };
}
