// What steps take by the clock, phase by phase, against the trigger; what waits; rows and results a second.

import { stepBars } from "../step_bars.js";
import { DEAD, behind, chart, compact, count, counter, facts, h, number, percent, redraw, seconds, table, waits } from "../lib.js";

const SLOWEST = 10;

export function render(element, data, context) {
  const charts = h("div", { class: "charts" });
  const { summary, times } = data;
  redraw(element, [
    h("h2", {}, "Steps"),
    times.length ? facts([
      ["a step takes", `${seconds(summary.seconds)}, mean of ${count(summary.steps, "step")}`], ["the last took", seconds(summary.last)],
      ["trigger", summary.interval === null ? "none: steps come as they are asked for" : `every ${seconds(summary.interval)}`],
      summary.interval ? ["against the trigger", summary.seconds > summary.interval ? `${number(summary.seconds / summary.interval)} times its interval` : `${percent(summary.seconds / summary.interval)} of its interval`] : null,
      ["rows a second", number(summary.rows_per_second)], ["watermark behind the newest event", seconds(summary.watermark_lag)],
      ["newest event behind the clock", behind(summary.behind)], ["waits at the sources", waits(summary.backlog)],
    ]) : h("p", { class: "empty" }, "The times of these steps are not known: a job writes those of its newest steps, within seconds."),
    times.length ? stepBars(times, data.phases) : null,
    charts,
    h("details", { id: "slowest" }, h("summary", {}, "The slowest steps as a table"), slowest(data)),
  ], String(context.index));
  lines(charts, data);
}

const slowest = (data) => table([
  counter("step"), { title: "took", number: true, value: (one) => seconds(one.seconds) },
  ...data.phases.map((name) => ({ title: name, number: true, value: (one) => seconds(one.phases[name]) })),
  counter("rows"), counter("results"),
  counter("late"), DEAD,
], [...data.times].sort((one, other) => other.seconds - one.seconds), { caption: "Steps, the slowest first", most: SLOWEST });

function lines(element, data) {
  const { times, work } = data;
  const own = (name) => times.map((one) => one[name]);
  const steps = own("step");
  if (times.length > 1) {
    chart(element, "Rows and results a second", steps, [{ label: "rows", values: own("rows_per_second"), unit: compact }, { label: "results", values: own("results_per_second"), unit: compact }]);
    if (times.some((one) => one.backlog !== null)) chart(element, "What waits at the sources", steps, [{ label: "waiting", values: own("backlog"), unit: compact }]);
    if (times.some((one) => one.watermark_lag !== null)) chart(element, "Watermark behind the newest event", steps, [{ label: "lag", values: own("watermark_lag"), unit: seconds }]);
  }
  if (work.steps.length > 1) {
    chart(element, "Rows a step", work.steps, [{ label: "rows in", values: work.rows_in, unit: compact }, { label: "results", values: work.rows_out, unit: compact }]);
    chart(element, "Comparisons a step", work.steps, [{ label: "comparisons", values: work.comparisons, unit: compact }]);
    chart(element, "Rows held", work.steps, [{ label: "rows held", values: work.state_rows, unit: compact }]);
  }
}
