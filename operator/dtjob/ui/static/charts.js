// SPDX-License-Identifier: Apache-2.0
// Curves: one chart for each metric, with a line for training, each epoch, validation and the evaluator.
import {el, write} from "./dom.js";

const COLOURS = ["--line-1", "--line-2", "--line-3", "--line-4"];
const HEIGHT = 190;
const KINDS = [[/^epoch_/, "each epoch"], [/^val_/, "validation"], [/^evaluator /, "evaluator"]];

/** The metric that a curve is of, and what of it. */
function split(name) {
  const found = KINDS.find(([begin]) => begin.test(name));
  return found ? [name.replace(found[0], ""), found[1]] : [name, "training"];
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const short = (value) => (value === null || value === undefined ? "" : String(Number(value.toPrecision(4))));

/** The charts of a job, the loss first. */
export function charts() {
  const made = new Map();
  const element = el("div", {class: "charts"});
  const sizes = new ResizeObserver((entries) => entries.forEach(({target, contentRect}) =>
    made.forEach((one) => one.box === target && one.plot.setSize({width: Math.max(200, contentRect.width), height: HEIGHT}))));
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  let last = [[], []];

  function clear() {
    made.forEach((one) => one.plot.destroy());
    made.clear();
    sizes.disconnect();
    element.replaceChildren();
  }

  const redraw = () => {
    clear();
    draw(...last);
  };
  scheme.addEventListener("change", redraw);

  /** Draw the curves, and a mark at each step at which an incident was. */
  function draw(curves, incidents) {
    last = [curves, incidents];
    const groups = new Map();
    for (const curve of curves) {
      const [metric, kind] = split(curve.name);
      groups.set(metric, [...(groups.get(metric) ?? []), {...curve, kind}]);
    }
    const names = [...groups.keys()].sort((a, b) => (b === "loss") - (a === "loss") || (a < b ? -1 : 1));
    const kinds = JSON.stringify(names.map((name) => [name, groups.get(name).map((one) => one.kind)]));
    if (element.dataset.kinds !== kinds || !made.size) {
      clear();
      element.dataset.kinds = kinds;
      for (const name of names) made.set(name, begin(name, groups.get(name)));
    }
    for (const name of names) {
      const one = made.get(name);
      const lines = groups.get(name);
      one.marks = incidents.map((incident) => incident.fromStep).filter(Number.isFinite);
      one.plot.setData(uPlot.join(lines.map((line) => [line.steps, line.values])));
      const ends = lines.map((line) => `${line.kind} ${short(line.values.at(-1))} at step ${line.steps.at(-1)}`);
      write(one.last, ends.join(", "));
    }
  }

  function begin(name, lines) {
    const last = el("span");
    const box = el("div", {role: "img", "aria-label": `curve of ${name}`});
    element.append(el("figure", {}, el("figcaption", {}, el("b", {}, name), " ", last), box));
    const one = {box, last, marks: []};
    const axis = {stroke: colour("--quiet"), grid: {stroke: colour("--edge"), width: 1}, ticks: {stroke: colour("--edge")}};
    one.plot = new uPlot({
      width: Math.max(200, box.clientWidth),
      height: HEIGHT,
      scales: {x: {time: false}},
      axes: [{...axis}, {...axis, size: 64, values: (_, ticks) => ticks.map(short)}],
      series: [{label: "step"}, ...lines.map((line, at) => ({
        label: line.kind, stroke: colour(COLOURS[at % COLOURS.length]), width: 1.5, spanGaps: true,
        value: (_, value) => short(value),
      }))],
      hooks: {draw: [(plot) => mark(plot, one.marks)]},
    }, [[], ...lines.map(() => [])], box);
    sizes.observe(box);
    return one;
  }

  function mark(plot, marks) {
    const {ctx, bbox} = plot;
    ctx.save();
    ctx.strokeStyle = colour("--bad");
    ctx.setLineDash([4, 4]);
    for (const step of marks) {
      const x = Math.round(plot.valToPos(step, "x", true));
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    }
    ctx.restore();
  }

  return {
    element,
    draw,
    close() {
      scheme.removeEventListener("change", redraw);
      clear();
    },
  };
}
