// SPDX-License-Identifier: Apache-2.0
// Shows the list of jobs at #/ and a job at #/NAMESPACE/NAME, each from one stream of events.
import {jobView} from "./job.js";
import {jobList} from "./list.js";
import {write} from "./dom.js";

const main = document.getElementById("main");
const state = document.getElementById("state");
const trouble = document.getElementById("trouble");
let stream = null;
let shown = null;

/** The view that the address names. */
function chosen() {
  const parts = location.hash.replace(/^#\/?/, "").split("/").filter(Boolean).map(decodeURIComponent);
  return parts.length === 2 ? jobView(parts[0], parts[1], listen) : jobList();
}

function show() {
  shown?.close?.();
  shown = chosen();
  document.title = shown.title;
  main.replaceChildren(shown.element);
  listen();
}

/** Read the stream of the view. A page that nobody sees reads none: a browser has six connections to one server. */
function listen() {
  stream?.close();
  stream = null;
  if (document.hidden) return;
  stream = new EventSource(shown.source());
  stream.onopen = () => say("live");
  stream.onerror = () => say(stream.readyState === EventSource.CLOSED
    ? "ended: start dtjob ui again and open its new address" : "no connection; trying again");
  stream.addEventListener("state", (event) => {
    const {title, trouble: why} = JSON.parse(event.data);
    write(document.getElementById("title"), title);
    write(trouble, why);
    trouble.hidden = !why;
  });
  for (const [name, take] of Object.entries(shown.events)) {
    stream.addEventListener(name, (event) => take(JSON.parse(event.data)));
  }
}

function say(text) {
  write(state, text);
  state.dataset.live = text === "live";
}

addEventListener("hashchange", () => {
  show();
  main.focus();
});
document.querySelector(".skip").addEventListener("click", () => main.focus());
document.addEventListener("visibilitychange", listen);
addEventListener("pagehide", () => stream?.close());
show();
