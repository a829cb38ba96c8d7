// The running plan as a graph; during a migration both plans, what they share, and how far it has come.

import { bytes, chart, compact, count, counter, duration, facts, h, meter, number, percent, redraw, stepText, table, time } from "../lib.js";
import { graph } from "../graph.js";
import { about, controls, proposal } from "../controls.js";

const SHOWN_LONG_ENOUGH = 10_000; // milliseconds: a migration may be over before anybody has looked at its picture
let seen = null; // the last migration that was under way: its query, its picture, and when it was seen first

/** The data, with the last picture of a migration that was seen too briefly. */
function lingering(data) {
  const now = Date.now(), lasts = seen?.query === data.query && now - seen.first < SHOWN_LONG_ENOUGH;
  if (data.migrations.length) {
    seen = { query: data.query, graph: data.graph, ended: data.migrations[0], first: seen?.query === data.query && seen.under_way ? seen.first : now, under_way: true };
    return { ...data, ended: null };
  }
  if (seen) seen.under_way = false;
  return lasts ? { ...data, graph: seen.graph, ended: seen.ended } : { ...data, ended: null };
}

export function render(element, found, context) {
  const data = found.query ? lingering(found) : found;
  if (!data.query) {
    element.replaceChildren(h("p", { class: "empty" }, "This job has no query yet."), controls(data, context));
    return false;
  }
  const charts = h("div", { class: "charts" });
  redraw(element, [
    h("h2", { id: "query-name" }, data.query),
    h("p", {}, h("code", { class: "plan" }, data.plan)),
    h("pre", { id: "sql", tabindex: "0", "aria-label": "SQL" }, data.text),
    streams(data),
    proposal(data, context),
    ...data.migrations.map((one) => migration(one, data)),
    data.ended ? h("p", { class: "callout ended", role: "status" }, `The migration by ${data.ended.strategy} from ${data.ended.old} to ${data.ended.plan} is over; the picture shows its last step.`) : null,
    facts([
      ["rows out", compact(data.counters.rows_out)], ["comparisons", compact(data.counters.comparisons)],
      ["rows held", number(data.state_rows)], ["bytes held", bytes(data.state_bytes)],
      ["spread", `${count(data.lanes, "lane")}, ${data.spread}`], ["optimizer", data.pinned ? "pinned" : data.mode],
      data.mates.count ? ["shares with", mates(data, context)] : null,
      data.exact_from ? ["exact from", time(data.exact_from)] : null,
    ]),
    drawing(data),
    charts,
    h("details", { id: "operators" }, h("summary", {}, "Operators and states as tables"), operators(data), states(data)),
    controls(data, context),
  ], about(data, context));
  rates(charts, data);
  return Boolean(data.ended);
}

/** Which stream each alias of the text is, where the names differ. */
const streams = (data) => {
  const named = data.graph.aliases.filter((one) => one.alias !== one.stream || one.label !== one.stream);
  return named.length ? h("p", { class: "quiet", id: "aliases" }, named.map((one, at) => [at ? ", " : "", h("code", {}, one.alias), ` is stream ${one.stream}`, [one.alias, one.stream].includes(one.label) ? "" : ` (${one.label} in the boxes)`])) : null;
};

const mates = (data, context) => h("span", {}, `${number(data.mates.count)}: `, data.mates.first.slice(0, 4).map((name, at) => [
  at ? ", " : "", h("a", { href: "#", onclick: (event) => { event.preventDefault(); context.go({ query: name }); } }, name),
]), data.mates.count > 4 ? " …" : "");

/** A migration under way: both plans, what each serves, how far, and when it will be over. */
function migration(one, data) {
  const left = one.predicted_end !== null && data.now !== null ? one.predicted_end - data.now : null;
  const predicted = one.detail?.predicted || {};
  return h("section", { class: "callout migration", "aria-labelledby": `m-${one.mark}` },
    h("h3", { id: `m-${one.mark}` }, `Migration by ${one.strategy} since step ${one.begun}`),
    h("p", {}, meter(one.progress, "progress"), ` ${one.phase || "begins"}`),
    facts([
      ["from the old plan", h("code", { class: "plan old" }, one.old)], ["to the new plan", h("code", { class: "plan new" }, one.plan)],
      ["the old plan serves", one.old_serves || "–"], ["the new plan serves", one.new_serves || "–"],
      ["predicted end", one.predicted_end === null ? "not set by event time" : `${time(one.predicted_end)}${left > 0 ? `, in ${duration(left)} of event time` : ""}`],
      ["comparisons it has cost", number(one.comparisons)],
      predicted.work !== undefined ? ["predicted work", `${duration(predicted.work / 1000)}`] : null,
    ]));
}

/** The colours in words; a strategy such as jisc drops the old plan at once. */
const colours = ({ nodes }) => (nodes.some((one) => one.plans.join() === "old")
  ? "Both plans: the new one is blue, the old one is orange and dashed, parts of both are grey"
  : "The new plan is blue; the old plan no longer runs");

function drawing(data) {
  const migrating = data.migrations.length > 0 || data.ended;
  return h("figure", { class: "graph" },
    h("figcaption", {}, migrating ? colours(data.graph) : "The running plan",
      data.graph.since === null ? "; figures since the query began" : `; figures since ${stepText(data.graph.since)}`, ". A percentage is a share of all comparisons; times are estimates that also count rows out and rows kept."),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Plan" }, graph(data.graph, data)),
    data.graph.left_out ? h("p", { class: "empty" }, `${number(data.graph.left_out)} operators more`) : null);
}

const side = (plans) => (plans.length === 2 ? "both plans" : plans.length === 1 ? `${plans[0]} plan` : "–");

const operators = (data) => table([
  { title: "operator", value: (one) => one.label }, { title: "part of", value: (one) => side(one.plans) },
  { title: "rows in", number: true, value: (one) => one.figures.rows_in },
  { title: "comparisons", number: true, value: (one) => one.figures.comparisons },
  { title: "rows out", number: true, value: (one) => one.figures.rows_out },
  counter("out per row in", "selectivity"),
  { title: "share of comparisons", number: true, value: (one) => percent(one.share) },
  { title: "a step, about", number: true, value: (one) => (one.work === null ? "–" : duration(one.work / 1000 / Math.max(1, data.graph.steps))) },
  { title: "held", number: true, value: (one) => bytes(one.states.reduce((sum, state) => sum + state.bytes, 0)) },
], data.graph.nodes, { caption: "Operators" });

function states(data) {
  const all = new Map();
  for (const node of data.graph.nodes) for (const state of node.states) all.set(state.id, state);
  return table([
    { title: "state", value: (one) => one.name }, counter("rows"),
    { title: "bytes", number: true, value: (one) => bytes(one.bytes) }, { title: "read by", value: (one) => side(one.plans) }, { title: "complete", value: (one) => (one.complete ? "yes" : "not yet") },
    { title: "rows by lane", value: (one) => (one.lanes.length > 12 ? `${one.lanes.length} lanes` : one.lanes.map(number).join(", ")) },
  ], [...all.values()], { caption: "States" });
}

function rates(element, data) {
  const { steps, rows_out: out, rows_in: input, comparisons } = data.rates;
  if (steps.length < 2) return;
  chart(element, "Rows a step", steps, [{ label: "rows of this query", values: out, unit: compact }, { label: "rows in", values: input, unit: compact }], { marks: data.marks });
  chart(element, "Comparisons a step, of the job", steps, [{ label: "comparisons", values: comparisons, unit: compact }], { marks: data.marks });
}
