// A chain of slices: ages to the right, a box for each slice, a bar for each query as far as it reads.

import { compact, count, duration, h, number, percent, s } from "./lib.js";

const LABEL = 190;
const BOX = 58;
const LINE = 20;
const WIDE = 1100;

/** An age, as far as a window on it reaches: a span of time, or so many rows. */
export const age = (value, timed) => (value === null ? "as far as windows reach" : timed ? duration(value) : count(value, "row"));

/** What rows older than a slice's beginning must pass to be kept, by label. */
export const filterText = (filter) => Object.entries(filter || {}).filter(([, any]) => any !== null).map(([label, any]) => any.join(" or ") || `none of ${label}`).join("; ");

/** The slices are drawn alike however long they are, for windows may be of a minute and of a year. */
export function chainDrawing(chain) {
  const { slices, timed } = chain;
  const cell = Math.max(64, Math.min(220, (WIDE - LABEL) / slices.length));
  const width = LABEL + slices.length * cell + 10;
  const work = slices.reduce((sum, one) => sum + (one.comparisons || 0), 0);
  const members = Object.entries(chain.queries);
  const tall = BOX + 30 + members.length * LINE;
  const label = `Chain of ${count(slices.length, "slice")}, read by ${count(chain.members, "query")}`;
  return h("figure", { class: "chain" },
    h("figcaption", {}, label, h("span", { class: "key" }, " · a slice is the darker the more is compared in it; ▽ rows beyond must pass a filter; a bar is how far a query reads")),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
      s("svg", { viewBox: `0 0 ${width} ${tall}`, width, height: tall, role: "img", "aria-label": label },
        slices.map((one, at) => slice(one, LABEL + at * cell, cell, work, timed, at)),
        members.map(([name, query], at) => reader(name, query, chain, at, cell, tall)))));
}

function slice(one, x, wide, work, timed, at) {
  const share = work ? (one.comparisons || 0) / work : 0;
  const filter = at ? filterText(one.filter) : "";
  const rows = Object.entries(one.rows || {}).map(([label, held]) => `${label}: ${number(held)}`).join(", ");
  return s("g", { class: "slice" },
    s("title", {}, [`${age(one.from, timed)} to ${age(one.to, timed)}, read by ${count(one.queries, "query")}`, `rows ${rows}`, `${number(one.comparisons)} comparisons, ${percent(share)} of all`, filter ? `rows beyond ${age(one.from, timed)} pass ${filter}` : ""].filter(Boolean).join("\n")),
    s("rect", { class: "back", x: x + 3, y: 2, width: wide - 6, height: BOX, rx: 4 }),
    s("rect", { class: "heat", x: x + 3, y: 2, width: wide - 6, height: BOX, rx: 4, "fill-opacity": (share * 0.6).toFixed(3) }),
    s("text", { x: x + 10, y: 20 }, one.to === null ? "rows, counted" : `≤ ${age(one.to, timed)}`),
    s("text", { x: x + 10, y: 36 }, `${compact(Object.values(one.rows || {}).reduce((sum, held) => sum + held, 0))} rows`),
    s("text", { x: x + 10, y: 52 }, percent(share)),
    filter ? s("text", { class: "filter", x, y: BOX + 18, "text-anchor": "middle" }, "▽") : null);
}

/** A query's bar, as far as its widest window reaches; within a slice by its share of the slice. */
function reader(name, query, chain, at, cell, tall) {
  const reach = Math.max(...Object.values(query.reads).map((one) => one.window));
  const y = BOX + 30 + at * LINE;
  let end = 0;
  for (const one of chain.slices) {
    if (one.to === null) end += reach / Math.max(...Object.values(chain.queries).flatMap((each) => Object.values(each.reads).map((read) => read.window)));
    else if (reach >= one.to) end += 1;
    else { end += Math.max(0, (reach - one.from) / (one.to - one.from)); break; }
  }
  const filters = Object.entries(query.reads).filter(([, one]) => one.filter).map(([, one]) => one.filter).join("; ");
  const text = `${name} reads ${age(reach, chain.timed)}${filters ? ` of what passes ${filters}` : ""}`;
  return s("g", { class: "reader", "data-query": name, "data-end": end.toFixed(2) }, s("title", {}, text),
    s("text", { x: LABEL - 8, y: y + 13, "text-anchor": "end" }, name.length > 22 ? `${name.slice(0, 21)}…` : name),
    s("rect", { x: LABEL, y: y + 3, width: Math.max(3, end * cell), height: LINE - 7, rx: 3, class: filters ? "filtered" : null }),
    filters ? s("text", { class: "passes", x: LABEL + 6, y: y + 13 }, filters.length > end * cell / 7 ? `${filters.slice(0, Math.max(3, Math.floor(end * cell / 7) - 1))}…` : filters) : null);
}
