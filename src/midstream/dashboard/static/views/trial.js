// SQL that is tried: over the rows that the job keeps, or as a query that the job might be given. Nothing is changed.

import { api } from "../api.js";
import { graph } from "../graph.js";
import { count, counter, facts, h, number, problem, redraw, table } from "../lib.js";

export function render(element, data, context) {
  const rows = Math.min(16, Math.max(6, data.sql.split("\n").length + 1));
  const box = h("textarea", { id: "sql-text", rows, spellcheck: "false", "aria-label": "SQL", "data-keep": data.sql }, data.sql);
  const out = h("div", { class: "tried", "aria-live": "polite" });
  const attempt = (of, show) => h("button", { type: "button", onclick: async () => {
    out.replaceChildren(h("p", { class: "quiet" }, "It is tried …"));
    try {
      out.replaceChildren(...show(await api.attempt(context.index, { of, sql: box.value })).filter(Boolean));
    } catch (error) {
      out.replaceChildren(problem(error));
    }
  } }, of === "rows" ? "Run it over kept rows" : "Show the plan it would get");
  if (element.dataset.about === String(context.index) && element.querySelector("#sql-text")) return; // An answer stays.
  redraw(element, [
    h("h2", {}, "Try a query"),
    h("p", { class: "quiet" }, "Nothing here changes the job. Run DuckDB's SQL over the rows that the job keeps now, a table for each stream. Or write a query as you would add it, with its WINDOW, and see its plan."),
    box, h("p", { class: "buttons" }, attempt("rows", answer), attempt("plan", planned)), out,
    table([
      { title: "stream", value: (one) => one.name }, counter("rows kept", "rows"),
      { title: "columns", value: (one) => one.columns.join(", ") },
    ], data.tables, { caption: "Tables", empty: "This job reads no stream yet." }),
  ], String(context.index));
}

const answer = (found) => [
  table(found.columns.map((name, at) => ({ title: name, value: (row) => row[at] ?? h("span", { class: "null" }, "NULL") })), found.rows, { caption: "Answer", empty: "No row." }),
  found.more ? h("p", { class: "empty" }, `Only the first ${number(found.rows.length)} rows are shown.`) : null,
];

const planned = (found) => [
  h("p", {}, "It would run by ", h("code", { class: "plan" }, found.plan)),
  facts([
    ["lanes", `${count(found.lanes, "lane")}, ${found.spread}`],
    ["shares with", found.shares_with.join(", ") || "no query"],
    ["rows that are there already", found.shared.map((one) => `${one.name}: ${number(one.rows)}`).join("; ") || "none"],
  ]),
  found.cross.length ? problem({ message: `A cross join: ${found.cross.join("; ")}.` }) : null,
  h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Plan" }, graph(found.graph, found)),
];
