// Samples of kept rows and results, and the rows that did not enter. Values are set as texts.

import { DEAD, chart, compact, count, counter, duration, h, number, redraw, table, time } from "../lib.js";

const WORDS = { late: "Late rows of", dead_letters: "Dead letters of", rejected: "Dead letters of query" };

export function render(element, data, context) {
  const charts = h("div", { class: "charts" });
  redraw(element, [
    h("h2", {}, "Rows that came, and those that did not enter"),
    table([
      { title: "stream", value: (one) => one.name }, counter("rows"),
      counter("late"), DEAD,
      { title: "newest event", value: (one) => time(one.greatest) }, { title: "watermark", value: (one) => time(one.watermark) },
      { title: "queries that wait for it", value: (one) => (one.holds_back.length ? `${one.holds_back.join(", ")}: ${one.since}` : "") },
      { title: "lateness allowed", number: true, value: (one) => duration(one.lateness) },
    ], data.streams, { caption: "Streams", empty: "This job reads no stream yet." }),
    data.results ? newest(`Newest results of ${data.results.query}`, data.results) : null,
    data.kept.map((one) => (one.rows.length ? newest(`Newest kept rows of ${one.name}`, one) : null)),
    charts,
    data.samples.length ? data.samples.map(sample) : h("p", { class: "empty" }, "Every row has entered: none was late, all could be read, and everything could be evaluated."),
    data.left_out ? h("p", { class: "empty" }, `${number(data.left_out)} more streams or queries have such rows.`) : null,
  ], String(context.index));
  const { steps, late, rejected } = data.lines;
  if (steps.length > 1 && data.samples.length) {
    chart(charts, "Rows that did not enter, a step", steps, [{ label: "late", values: late, unit: compact }, { label: "dead letters", values: rejected, unit: compact }]);
  }
}

const value = (at) => (row) => row[at] ?? h("span", { class: "null" }, "NULL");
const newest = (caption, one) => (one.elsewhere ? h("p", { class: "quiet" }, `${caption}: ${one.elsewhere}.`)
  : table(one.columns.map((name, at) => ({ title: name, value: value(at) })), one.rows, { caption: one.step === undefined ? caption : `${caption}, step ${one.step}` }));

/** Why a row did not enter: a dead letter's reason, or by how much it was late. */
const why = (one, at) => (one.kind === "late" ? (one.late_by[at] === null ? "the watermark had passed it" : `${duration(one.late_by[at])} behind the watermark`) : one.reasons[at]);

function sample(one) {
  const title = `${WORDS[one.kind]} ${one.stream}`;
  if (!one.rows.length) return h("section", {}, h("h3", {}, title), h("p", { class: "empty" }, "Their files are not in place, or hold more than is looked into here."));
  return h("section", {}, h("h3", {}, title),
    one.common.length ? h("ul", { class: "reasons" }, one.common.map((each) => h("li", {}, `${count(each.count, "row")}: ${each.reason}`))) : null,
    table([
      counter("step"), { title: one.kind === "late" ? "how late" : "why", value: (row) => row.why },
      ...one.columns.map((name, at) => ({ title: name, value: (row) => row.values[at] ?? h("span", { class: "null" }, "NULL") })),
    ], one.rows.map((values, at) => ({ values, step: one.steps[at], why: why(one, at) })), { caption: `The newest of ${count(one.read, "row")} looked at` }));
}
