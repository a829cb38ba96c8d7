// All queries of a job, searched by name, text or plan.

import { choice } from "../controls.js";
import { counter, h, number, redraw, table } from "../lib.js";

const PAUSE = 200;
let typing = 0;

export function render(element, data, context) {
  const search = (event) => {
    window.clearTimeout(typing);
    const { value } = event.target;
    typing = window.setTimeout(() => context.go({ search: value }), PAUSE);
  };
  const order = choice("order", "Order by", data.orders, data.order);
  order.addEventListener("change", (event) => { context.go({ order: event.target.value }); event.target.blur(); });
  const plan = (name) => h("button", { type: "button", onclick: () => context.go({ view: "plan", query: name }) }, name);
  const folded = (one) => (one.parts.length ? h("details", { id: `parts ${one.name}` }, h("summary", {}, one.parts.length === 1 ? "1 part" : `${number(one.parts.length)} parts`), one.parts.map(plan)) : null);
  redraw(element, [
    h("h2", {}, `Queries: ${number(data.all)}`),
    h("form", { role: "search", class: "search", onsubmit: (event) => event.preventDefault() },
      h("label", { for: "search" }, "Search ", h("input", { id: "search", type: "search", "data-keep": "", value: data.search, oninput: search, autocomplete: "off", spellcheck: "false", placeholder: "name, text or plan" })), order),
    h("p", { class: "quiet", role: "status" }, data.found > data.queries.length ? `${number(data.found)} found, the first ${number(data.queries.length)} shown` : `${number(data.found)} found`),
    table([
      { title: "query", value: (one) => [plan(one.name), folded(one)] },
      { title: "", value: (one) => [one.waits ? "to decide" : "", one.migrating ? "migrating" : ""].filter(Boolean).join(", ") },
      { title: "plan", value: (one) => h("code", {}, one.plan) }, counter("rows out", "rows_out"),
      counter("comparisons"), counter("rows held", "state_rows"),
      { title: "shares", value: (one) => (one.chain === null ? "–" : `chain ${one.chain}`) }, { title: "spread", value: (one) => one.spread },
      { title: "optimizer", value: (one) => one.mode }, { title: "text", value: (one) => one.sql },
    ], data.queries, { caption: "Queries", empty: "No query has all these words." }),
  ], String(context.index));
}
