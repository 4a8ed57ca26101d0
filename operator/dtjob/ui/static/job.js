// SPDX-License-Identifier: Apache-2.0
// One job: progress, curves, incidents, tasks, the last lines of a log, conditions and the manifest.
import {ago, badge, duration, el, steps, table, withUnit, write} from "./dom.js";
import {charts} from "./charts.js";

/** A part of the view with a heading. */
const part = (title, ...children) => el("section", {class: "card"}, el("h2", {}, title), ...children);

/** Replace the children of an element if `value` is another than before. */
function fill(element, value, make) {
  const text = JSON.stringify(value);
  if (element.dataset.shown === text) return;
  element.dataset.shown = text;
  element.replaceChildren(...[make()].flat(Infinity));
}

function incident(one) {
  const back = Number.isFinite(one.fromStep) && Number.isFinite(one.toStep)
    ? `step ${one.fromStep} back to ${one.toStep}` : "";
  const lost = Number.isFinite(one.secondsLost) ? `${duration(one.secondsLost)} lost` : "";
  return el("li", {}, el("time", {datetime: one.time}, one.time ? new Date(one.time).toLocaleString() : ""),
    el("b", {}, one.reason ?? ""), el("span", {}, [one.task, one.message].filter(Boolean).join(" ")),
    el("small", {}, [back, lost].filter(Boolean).join(", ")));
}

/** The view of a job. `listen` begins another stream, after another task was chosen. */
export function jobView(namespace, name, listen) {
  const path = `${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
  const plots = charts();
  const parts = Object.fromEntries(["phase", "message", "facts", "incidents", "tasks", "conditions"]
    .map((one) => [one, el("div", {class: one})]));
  const bar = el("progress", {max: 100, "aria-label": "progress", hidden: true});
  const step = el("strong");
  const note = el("p", {class: "note"}, "no values yet");
  const log = el("pre", {class: "log", tabindex: 0, role: "log", "aria-label": "last lines of the log"});
  const task = el("select", {change: listen}, el("option", {value: ""}, "the chief task"));
  const yaml = el("pre", {tabindex: 0});
  const manifest = el("details", {class: "card", toggle: read}, el("summary", {}, "Manifest and status"),
    el("a", {href: `jobs/${path}.yaml`, download: `${name}.yaml`}, "download"), yaml);
  let incidents = [];
  let curves = [];

  async function read() {
    if (!manifest.open) return;
    const answer = await fetch(`jobs/${path}.yaml`);
    write(yaml, await answer.text());
  }

  function takeJob(job) {
    fill(parts.phase, [job.phase, job.reason], () => [badge(job.phase), el("span", {}, job.reason ?? "")]);
    write(parts.message, job.message ?? "");
    bar.hidden = job.percentage === null;
    if (job.percentage !== null) bar.value = job.percentage;
    write(step, [steps(job), withUnit(job.percentage, " %"), withUnit(job.stepsPerSecond, " steps/s"),
      withUnit(job.inputWait, " % of the time waiting for data"),
      job.secondsLeft === null ? "" : `about ${duration(job.secondsLeft)} left`].filter(Boolean).join(" · "));
    fill(parts.facts, job.facts, () => el("dl", {}, job.facts.map(([label, text]) => [el("dt", {}, label), el("dd", {}, text)])));
    fill(parts.incidents, job.incidents, () => job.incidents.length
      ? el("ol", {}, [...job.incidents].reverse().map(incident)) : el("p", {class: "note"}, "nothing has gone wrong"));
    fill(parts.tasks, [job.tasks, job.moreTasks, job.why], () => [
      table("Tasks", job.taskColumns, job.tasks),
      ...(job.moreTasks > 0 ? [el("p", {class: "note"}, `${job.moreTasks} more tasks`)] : []),
      ...(job.why ? [el("p", {class: "note"}, `a task could not be asked for its step: ${job.why}`)] : []),
    ]);
    fill(parts.conditions, job.conditions, () => table("Conditions", ["Condition", "", "Reason", "Message", "Since"],
      job.conditions.map((one) => [one.type, one.status, one.reason ?? "", one.message ?? "", ago(one.lastTransitionTime)])));
    const names = job.tasks.map(([one]) => one);
    if (names.join() !== [...task.options].slice(1).map((one) => one.value).join()) {
      const before = task.value;
      task.replaceChildren(task.options[0], ...names.map((one) => el("option", {}, one)));
      task.value = names.includes(before) ? before : "";
    }
    incidents = job.incidents;
    plots.draw(curves, incidents);
  }

  function takeLog({lines}) {
    const isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 30;
    write(log, lines.join("\n") || "no line yet");
    if (isAtEnd) log.scrollTop = log.scrollHeight;
  }

  return {
    title: `${name} – dtjob`,
    source: () => `events/jobs/${path}${task.value ? `?task=${encodeURIComponent(task.value)}` : ""}`,
    events: {
      job: takeJob,
      log: takeLog,
      gone: () => write(parts.message, "There is no such job. It may have been deleted."),
      curves: (value) => {
        curves = value.curves;
        write(note, value.curves.length ? `Values: ${value.note}.` : `No values yet (${value.note}).`);
        plots.draw(curves, incidents);
      },
    },
    close: () => plots.close(),
    element: el("article", {},
      el("nav", {}, el("a", {href: "#/"}, "← All jobs")),
      el("header", {class: "job"}, el("h1", {}, name, el("small", {}, namespace)), parts.phase),
      parts.message, el("div", {class: "far"}, bar, step),
      part("Curves", note, plots.element),
      part("Incidents", parts.incidents),
      part("Tasks", parts.tasks),
      part("Log", el("label", {}, "Task", task), log),
      el("div", {class: "two"}, part("State", parts.facts), part("Conditions", parts.conditions)),
      manifest),
  };
}
