// What queries share: chains, the slices of one, who reads how far, and what rows must pass to be kept.

import { age, chainDrawing, filterText } from "../chain.js";
import { count, counter, facts, h, number, redraw, table, time } from "../lib.js";

const WAYS = { slice: "by the slices they read", router: "by a router", parts: "by a join for each choice of parts", come: "as they come" };

export function render(element, data, context) {
  const { chain } = data;
  redraw(element, [
    h("h2", {}, `Sharing: ${data.sharing}`),
    facts([["queries", number(data.queries)], ["chains", number(data.chains.length + data.chains_left_out)], ["queries that share with none", `${number(data.alone.count)}${data.alone.count ? `: ${some(data.alone)}` : ""}`]]),
    chain ? chosen(chain, context) : h("p", { class: "empty" }, "No queries share a chain here."),
    data.chains.length > 1 ? h("details", { id: "chains" }, h("summary", {}, `All ${number(data.chains.length)} chains`), chains(data, context)) : null,
  ], String(context.index));
}

const some = (list) => list.first.slice(0, 6).join(", ") + (list.count > 6 ? " …" : "");

const chains = (data, context) => table([
  { title: "chain", value: (one) => h("button", { type: "button", onclick: () => context.go({ chain: one.name }) }, one.name) },
  counter("queries"), { title: "such as", value: (one) => some({ first: one.first, count: one.queries }) },
  { title: "plan", value: (one) => one.plan }, counter("slices"), counter("rows held", "state_rows"),
], data.chains, { caption: "Chains, those of most queries first" });

function chosen(chain, context) {
  const { timed } = chain;
  const filters = Object.entries(chain.lineage).flatMap(([label, one]) => one.filters.map((each) => ({ label, stream: one.stream, ...each })));
  return h("section", { "aria-labelledby": "chain-name" },
    h("h3", { id: "chain-name" }, `Chain ${chain.chain}`),
    facts([
      ["plan", h("code", { class: "plan" }, chain.plan)], ["queries", number(chain.members)], ["different windows", number(chain.windows)], ["results reach queries", WAYS[chain.delivery] || chain.delivery],
      ["comparisons outside the slices", number(chain.elsewhere)], chain.migrations.length ? ["migrations", number(chain.migrations.length)] : null,
    ]),
    chainDrawing(chain),
    chain.slices_left_out ? h("p", { class: "empty" }, `${number(chain.slices_left_out)} more slices.`) : null,
    table([
      { title: "ages", value: (one) => `${age(one.from, timed)} to ${age(one.to, timed)}` }, counter("queries that read it", "queries"),
      { title: "whose windows end in it", value: (one) => `${number(one.ends)}${one.ends ? `: ${some({ first: one.ending, count: one.ends })}` : ""}` },
      { title: "rows", value: (one) => Object.entries(one.rows).map(([label, held]) => `${label}: ${number(held)}`).join(", ") },
      counter("comparisons"), { title: "rows this old are kept if", value: (one) => filterText(one.filter) || "always" },
    ], chain.slices, { caption: "Slices" }),
    table([
      { title: "stream", value: (one) => `${one.label}${one.label === one.stream ? "" : ` (${one.stream})`}` }, { title: "filter", value: (one) => one.filter ?? "none: every row" },
      counter("queries"), { title: "widest window", number: true, value: (one) => age(one.window, timed) }, counter("since step", "since"),
    ], filters, { caption: "Filters, each tested once a row" }),
    chain.joins.length ? table([
      { title: "rows of", value: (one) => Object.entries(one.parts).map(([label, part]) => `${label}: ${partText(part)}`).join("; ") },
      { title: "within", value: (one) => Object.entries(one.windows).map(([label, size]) => `${label}: ${age(size, timed)}`).join(", ") },
      { title: "for", value: (one) => some({ first: one.queries, count: one.queries.length }) }, { title: "comparisons", number: true, value: (one) => one.counters.comparisons ?? 0 },
    ], chain.joins, { caption: "Joins of parts, each for the queries that read all of them" }) : null,
    h("details", { id: "readers" }, h("summary", {}, "Who reads what, as a table"), readers(chain, context)));
}

/** What the rows of a part pass, and what they fail. */
const partText = ({ passes, fails }) => [...passes, ...fails.map((one) => `not (${one})`)].join(" and ") || "all";

const readers = (chain, context) => table([
  { title: "query", value: (one) => h("button", { type: "button", onclick: () => context.go({ query: one.name, chain: "" }) }, one.name) },
  { title: "reads", value: (one) => Object.entries(one.reads).map(([label, each]) => `${label}: ${age(each.window, chain.timed)}${each.filter ? `, ${each.filter}` : ""}`).join("; ") },
  { title: "sees", value: (one) => (typeof one.sees === "number" ? `new, and earlier ones from ${time(one.sees)} on` : one.sees) }, { title: "exact from", value: (one) => (one.exact_from === null ? "–" : time(one.exact_from)) },
], Object.entries(chain.queries).map(([name, one]) => ({ name, ...one })), { caption: chain.members > Object.keys(chain.queries).length ? `${number(Object.keys(chain.queries).length)} of ${number(chain.members)} queries` : "Queries" });
