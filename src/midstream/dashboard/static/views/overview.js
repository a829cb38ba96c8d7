// How each job stands, and of the chosen one what its steps take and bring, its streams, its queries and its faults.

import { DEAD, badge, behind, chart, compact, count, counter, facts, h, number, percent, problem, rate, redraw, seconds, since, stepText, table, time, waits } from "../lib.js";

export function render(element, data, context) {
  const charts = h("div", { class: "charts" });
  redraw(element, [
    jobs(context),
    data.queries ? one(data, context, charts) : h("p", { class: "empty" }, `There is nothing more to see yet: ${context.overview.pending}.`),
  ], String(context.index));
  if (data.queries) lines(charts, data.times);
}

/** What a step takes beside the time between two of them. */
const pace = (taken) => (!taken?.seconds && taken?.seconds !== 0 ? "–" : taken.interval
  ? `${seconds(taken.seconds)} of ${seconds(taken.interval)} (${percent(taken.seconds / taken.interval)})` : seconds(taken.seconds));

const jobs = (context) => table([
  { title: "job", value: (job) => h("button", { type: "button", title: job.url, "aria-current": job.index === context.index ? "true" : null, onclick: () => context.go({ index: job.index }) }, job.name) },
  { title: "state", value: (job) => badge(job.life) },
  { title: "since", brief: true, value: (job) => since(job.life?.since) },
  counter("step"),
  { title: "a step takes", brief: true, value: (job) => pace(job.time) },
  { title: "rows a second", number: true, value: (job) => rate(job.time) },
  { title: "behind the clock", number: true, value: (job) => behind(job.time?.behind) },
  { title: "watermark lag", number: true, value: (job) => seconds(job.time?.watermark_lag) },
  counter("late rows", "late"), DEAD, counter("queries"),
  { title: "to do", value: (job) => [job.error, job.life?.reason, job.proposals ? `${number(job.proposals)} to decide` : "", job.migrating ? `${number(job.migrating)} migrating` : ""].filter(Boolean).join("; ") },
], context.jobs.map((job, index) => ({ ...job, index })), { caption: "Jobs" });

function one(data, context, charts) {
  const { life } = context.overview;
  const plan = (query) => h("button", { type: "button", onclick: () => context.go({ view: "plan", query: query.name }) }, query.name);
  return [
    h("p", { class: "standing-of", id: "life" }, badge(life), h("span", {}, `${life.word === "killed" ? "after" : "since"} ${since(life.since)}`), life.process ? h("span", { class: "quiet" }, life.process) : null),
    life.reason ? problem({ message: life.reason }) : null,
    freshness(data, context),
    faults(data),
    charts,
    table([
      { title: "query", value: plan }, { title: "plan", value: (query) => h("code", {}, query.plan) },
      { title: "optimizer", value: (query) => query.mode },
      { title: "what it says", long: true, value: (query) => [query.waits ? h("strong", {}, "waits for your answer. ") : null, query.migrating ? h("strong", {}, "is migrating. ") : null, query.says || "nothing yet"] },
      counter("rows out", "rows_out"), counter("rows held", "state_rows"), DEAD,
    ], data.queries, { caption: "Queries", empty: "This job has no query yet." }),
    data.queries_left_out ? h("p", { class: "empty" }, `${number(data.queries_left_out)} more are in the view of queries.`) : null,
    table([
      { title: "stream", value: (stream) => stream.name }, counter("rows"), counter("late"), DEAD,
      { title: "newest event", brief: true, value: (stream) => time(stream.greatest) }, { title: "watermark", brief: true, value: (stream) => time(stream.watermark) },
      { title: "queries that wait for it", value: (stream) => (stream.holds_back.length ? `${stream.holds_back.join(", ")}: ${stream.since}` : "") },
    ], data.streams, { caption: "Streams", empty: "This job reads no stream yet." }),
  ];
}

const freshness = (data, context) => facts([
  ["a step takes", pace(data.summary)], ["rows a second", rate(data.summary)],
  ["newest event is behind the clock", behind(data.summary.behind)], ["watermark lag", seconds(data.summary.watermark_lag)],
  ["last step", data.times.length ? stepText(data.times.at(-1).step) : stepText(context.overview.step)],
  ["waits at the sources", waits(data.summary.backlog)],
]);

function faults(data) {
  const found = [...data.refused.map((query) => ({ text: `query ${query.name} is refused: ${query.reason}` })), ...data.faults];
  return h("section", { "aria-labelledby": "faults" }, h("h3", { id: "faults" }, found.length ? `What went wrong lately: ${count(found.length, "report")}` : "Nothing has gone wrong lately"),
    found.length ? h("ul", { class: "faults" }, found.map((each) => h("li", {}, each.step === undefined ? each.text : `${stepText(each.step)}: ${each.text}${each.before ? ` (and ${number(each.before)} times before, since step ${number(each.since)})` : ""}`))) : null);
}

function lines(element, times) {
  if (times.length < 2) return;
  const own = (name) => times.map((each) => each[name]);
  const steps = own("step");
  const interval = times.some((each) => each.interval !== null) ? [{ label: "interval", values: own("interval"), unit: seconds }] : [];
  chart(element, "What a step takes", steps, [{ label: "a step", values: own("seconds"), unit: seconds }, ...interval]);
  chart(element, "Rows and results a second", steps, [{ label: "rows", values: own("rows_per_second"), unit: compact }, { label: "results", values: own("results_per_second"), unit: compact }]);
}
