// The page: which job, query, step and view are shown, and how what is shown stays up to date. Views are modules of
// their own, `views/NAME.js`, each with `render(element, data, context)`; the server says which there are.

import { badge, h, keepClocks, problem, remedy, seconds } from "./lib.js";
import { api, token, takeToken } from "./api.js";

const POLL = 1000;
const HIDDEN_POLL = 15000;
const $ = (id) => document.getElementById(id);
const place = { index: 0, view: "overview", options: new URLSearchParams() };
const modules = new Map();
let server = { checkpoints: [], views: [], forms: [], control: false };
let overview = null;
let jobs = [];
let drawn = "";
let timer = 0;
let pressed = false;
let pulled = 0;
let turn = 0;

function readPlace() {
  const [path, options] = location.hash.replace(/^#\/?/, "").split("?");
  const [index, view] = path.split("/");
  place.index = Number.parseInt(index, 10) || 0;
  place.view = server.views.some((one) => one.name === view) ? view : server.views[0].name;
  place.options = new URLSearchParams(options || "");
}

/** Go elsewhere. Remove options that are null or ""; keep those that are not named. */
export function go({ index = place.index, view = place.view, ...options } = {}) {
  const all = index === place.index ? new URLSearchParams(place.options) : new URLSearchParams();
  // What was chosen of one query says nothing of another.
  if ("query" in options) for (const name of ["chain", "review"]) all.delete(name);
  for (const [name, value] of Object.entries(options)) {
    if (value === null || value === "") all.delete(name);
    else all.set(name, value);
  }
  const text = all.toString();
  location.hash = `#/${index}/${view}${text ? `?${text}` : ""}`;
}

function context() {
  const live = !place.options.get("step");
  return {
    index: place.index, overview, jobs, forms: server.forms, options: place.options,
    query: place.options.get("query") || overview?.queries?.[0] || "",
    step: overview?.step, isLive: live, go,
    canControl: server.control && Boolean(token()) && live,
    whyNot: !live ? "a step of the past is shown" : server.control
      ? "open the address that the dashboard printed: it has the token"
      : "read-only: start the dashboard with --control to give commands from here",
    send,
  };
}

async function refresh() {
  window.clearTimeout(timer);
  const mine = (turn += 1);
  const asked = location.hash;
  // What was asked for another place must not be drawn in this one.
  const isElsewhere = () => location.hash !== asked;
  try {
    const step = place.options.get("step");
    const glance = place.view === "overview";
    const found = await api.get(`/api/${place.index}${step ? `?step=${encodeURIComponent(step)}` : ""}`);
    const listed = glance ? (await api.get("/api/jobs")).jobs : [];
    if (isElsewhere()) return;
    [overview, jobs] = [found, listed];
    if (overview.pending) {
      $("standing").replaceChildren(badge(overview.life), ` ${overview.pending}`);
      drawLists();
      if (glance) await drawView({}, "");
      else $("main").replaceChildren(h("p", { class: "empty" }, `There is nothing to see yet: ${overview.pending}.`));
      drawn = "";
      return;
    }
    keepClocks(overview.clock);
    drawFrame();
    const data = await api.get(`/api/${place.index}/views/${place.view}?${place.options}`);
    if (isElsewhere()) return;
    const key = JSON.stringify([place.index, place.view, place.options.toString(), server.control, data, overview.clock.at(-1), overview.life.word, jobs, glance && Math.floor(Date.now() / 60_000)]);
    if (key !== drawn && !busy()) await drawView(data, key);
    $("standing").classList.remove("failed");
  } catch (error) {
    if (isElsewhere()) return;
    $("standing").textContent = error.message;
    $("standing").classList.add("failed");
    if (!error.lost) { $("main").replaceChildren(failed(error)); drawn = ""; }
  } finally {
    if (!isElsewhere()) $("main").removeAttribute("aria-busy");
    if (mine === turn) timer = window.setTimeout(refresh, document.hidden ? HIDDEN_POLL : POLL);
  }
}

/** Whether somebody clicks or types in the view, who must not lose what is under his hands. */
const busy = () => pressed || ($("main").contains(document.activeElement) && /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)
  && drawn.startsWith(JSON.stringify([place.index, place.view, place.options.toString()]).slice(0, -1)));

const failed = (error) => problem(error, error.place ? h("p", {}, `At ${error.place}.`) : null,
    place.options.get("step") ? h("p", {}, h("button", { type: "button", onclick: () => go({ step: "" }) }, "To the newest step")) : null);

async function drawView(data, key) {
  const name = place.view;
  if (!modules.has(name)) modules.set(name, await import(`./views/${name}.js`));
  if (name !== place.view) return;
  const main = $("main");
  const focused = main.contains(document.activeElement) ? document.activeElement.id : "";
  const passing = modules.get(name).render(main, data, context()); // whether the next look differs without new data
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  drawn = passing ? "" : key;
  Object.assign(document.body.dataset, { view: name, options: place.options.toString() });
}

function drawFrame() {
  fill($("step"), [["", `newest (${overview.steps.at(-1) ?? overview.step})`], ...overview.steps.slice(0, -1).reverse().map((one) => [String(one), String(one)])],
    place.options.get("step") || "");
  drawTravel();
  document.querySelector("header").classList.toggle("past", Boolean(place.options.get("step")));
  drawLists();
  const names = overview.queries;
  if ($("queries").children.length !== names.length || $("queries").dataset.step !== String(overview.step)) {
    if (!sameNames(names)) $("queries").replaceChildren(...names.map((name) => h("option", { value: name })));
    $("queries").dataset.step = String(overview.step);
  }
  const chosen = place.options.get("query") || names[0] || "";
  if (document.activeElement !== $("query")) $("query").value = chosen;
  const proposed = overview.proposals.length;
  const words = [
    `step ${overview.step}`, overview.host,
    overview.migrating.length ? `${overview.migrating.length} migrating` : null,
    overview.waiting.length ? `${overview.waiting.length} waiting${overview.host === "spark" ? " for the next batch with data" : ""}` : null,
    overview.under_way ? `step ${overview.under_way.step} under way for ${seconds(Date.now() / 1000 - overview.under_way.begun)}` : null,
    proposed ? `${proposed} to decide` : null,
    place.options.get("step") ? "as it was" : null,
  ].filter(Boolean).join(" · ");
  $("standing").replaceChildren(badge(overview.life), ` ${words}`);
}

/** The list of jobs and that of views: there whether or not a job has done a step. */
function drawLists() {
  fill($("checkpoint"), server.checkpoints.map((one, index) => [String(index), one.name, one.url]), String(place.index));
  const links = server.views.map((one) => h("li", {}, h("a", {
    href: `#/${place.index}/${one.name}${place.options.toString() ? `?${place.options}` : ""}`, id: `view-${one.name}`,
    "aria-current": one.name === place.view ? "page" : null,
  }, one.title)));
  const list = $("views");
  const key = links.map((link) => link.firstChild.href + link.firstChild.getAttribute("aria-current")).join();
  if (list.dataset.key !== key) {
    const focused = list.contains(document.activeElement) ? document.activeElement.id : "";
    list.replaceChildren(...links);
    list.dataset.key = key;
    if (focused) document.getElementById(focused)?.focus();
  }
}

/** The slider has a place for each kept step; a hand on it is left alone. */
function drawTravel() {
  const { steps } = overview;
  const at = here();
  const slider = $("travel");
  slider.max = String(Math.max(0, steps.length - 1));
  if (!pulled) slider.value = String(at);
  slider.setAttribute("aria-valuetext", `step ${steps[Number(slider.value)] ?? overview.step}${Number(slider.value) >= steps.length - 1 ? ", the newest" : ""}`);
  slider.disabled = steps.length < 2;
  $("back").disabled = at <= 0;
  $("forth").disabled = at >= steps.length - 1;
}

/** Where the step that is shown is among those that are kept. */
function here() {
  if (!overview?.steps) return -1;
  const step = Number(place.options.get("step") || overview.steps.at(-1));
  const at = overview.steps.findIndex((one) => one >= step);
  return at < 0 ? overview.steps.length - 1 : at;
}

/** Look at a kept step by its place; at the last one the page is live. */
function travel(at) {
  const steps = overview?.steps || [];
  if (steps.length && at >= 0 && at < steps.length) go({ step: at === steps.length - 1 ? "" : String(steps[at]) });
}

const sameNames = (names) => {
  const there = $("queries").children;
  return there.length === names.length && names.every((name, at) => there[at].value === name);
};

function fill(select, options, chosen) {
  const key = JSON.stringify(options);
  if (select.dataset.key !== key && document.activeElement !== select) {
    select.replaceChildren(...options.map(([value, text, title]) => h("option", { value, title }, text)));
    select.dataset.key = key;
  }
  if (document.activeElement !== select) select.value = chosen;
}

/** Give a command and show what becomes of it; the outcome, or null where it was refused at once. */
async function send(command) {
  const notice = h("p", { class: "notice" }, `${command.command}: is sent`);
  $("notices").prepend(notice);
  while ($("notices").children.length > 4) $("notices").lastChild.remove();
  try {
    const sent = await api.post(`/api/${place.index}/commands`, command);
    for (let tries = 0; ; tries += 1) {
      const found = await api.get(`/api/${place.index}/commands/${sent.id}?since=${sent.since}`);
      const words = { sent: "is in the log; the job takes it with its next step", taken: "was taken and is under way", done: "is done", refused: "was refused" };
      const step = found.event ? ` in step ${found.event.step}` : "";
      notice.textContent = `Command ${sent.id}, ${command.command}: ${words[found.state]}${step}${found.event?.reason ? `: ${found.event.reason}` : ""}`;
      notice.dataset.state = found.state;
      void refresh();
      if (found.state === "done" || found.state === "refused" || tries > 120) return found;
      await new Promise((wait) => window.setTimeout(wait, 500));
    }
  } catch (error) {
    notice.textContent = `${command.command}: ${error.message}${error.remedy ? `. ${remedy(error.remedy)}` : ""}`;
    notice.dataset.state = "refused";
    drawn = "";
    void refresh();
    return null;
  }
}

function listen() {
  $("checkpoint").addEventListener("change", (event) => go({ index: Number(event.target.value) }));
  $("query").addEventListener("change", (event) => { go({ query: event.target.value }); event.target.blur(); });
  $("step").addEventListener("change", (event) => { go({ step: event.target.value }); event.target.blur(); });
  $("travel").addEventListener("input", (event) => {
    window.clearTimeout(pulled);
    const at = Number(event.target.value);
    event.target.setAttribute("aria-valuetext", `step ${overview?.steps[at]}`);
    pulled = window.setTimeout(() => { pulled = 0; travel(at); }, 150);
  });
  $("back").addEventListener("click", () => travel(here() - 1));
  $("forth").addEventListener("click", () => travel(here() + 1));
  $("main").addEventListener("pointerdown", () => { pressed = true; });
  window.addEventListener("pointerup", () => window.setTimeout(() => { pressed = false; }, 50));
  window.addEventListener("pointercancel", () => { pressed = false; });
  window.addEventListener("hashchange", () => { readPlace(); drawLists(); $("main").setAttribute("aria-busy", "true"); void refresh(); });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) void refresh(); });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    const digit = Number.parseInt(event.key, 10);
    if (digit >= 1 && digit <= server.views.length) go({ view: server.views[digit - 1].name });
    if (event.key === "/") { event.preventDefault(); $("query").select(); }
    if (event.key === "[" || event.key === "]") travel(here() + (event.key === "[" ? -1 : 1));
    if (event.key === "?") $("notices").prepend(h("p", { class: "notice" }, "Keys: 1 to 9 choose a view, / the query, [ and ] a step back and forth, Tab moves on."));
  });
}

takeToken();
server = await api.get("/api/checkpoints");
readPlace();
listen();
await refresh();
