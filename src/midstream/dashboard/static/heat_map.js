// Numbers as shades, a row for each figure: how far each lane or node is from the mean of its row.

import { h, number, s } from "./lib.js";

const CELL = 26;
const LABEL = 240;
const LONGEST = 60; // letters of a name
const MOST = 2;

/** `rows` are `{ name, values, show: value => text }`, `columns` the names of lanes or nodes; darker is more. */
export function heatMap(columns, rows, { id, label, column }) {
  const wide = Math.max(CELL + 34, Math.min(110, Math.floor(900 / Math.max(1, columns.length))));
  const space = Math.max(LABEL, ...rows.map((row) => 7 * Math.min(LONGEST, row.name.length) + 10));
  const width = space + columns.length * wide + 90;
  return h("figure", { class: "heat-map" },
    h("figcaption", {}, label, h("span", { class: "key" }, " · the shade goes from nothing over the mean of the row to twice the mean or more; the last column is the largest against the mean")),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
      s("svg", { viewBox: `0 0 ${width} ${(rows.length + 1) * CELL}`, width, height: (rows.length + 1) * CELL, role: "img", "aria-label": label },
        columns.map((name, at) => s("text", { x: space + (at + 0.5) * wide, y: CELL - 8, "text-anchor": "middle" }, `${column} ${name}`)),
        rows.map((row, at) => line(row, (at + 1) * CELL, columns, wide, column, space)))),
    h("details", { id: `table-${id}` }, h("summary", {}, "As a table"), asTable(columns, rows, label, column)));
}

const mean = (values) => values.reduce((sum, one) => sum + one, 0) / Math.max(1, values.length);

/** The largest against the mean; 1 where all are alike, null where there is nothing. */
export const imbalance = (values) => (mean(values) ? Math.max(...values) / mean(values) : null);

function line(row, top, columns, wide, column, space) {
  const middle = mean(row.values);
  const worst = imbalance(row.values);
  return s("g", { class: "heat-row" },
    s("text", { x: 0, y: top + CELL - 9 }, row.name.length > LONGEST ? `${row.name.slice(0, LONGEST - 1)}…` : row.name, s("title", {}, row.name)),
    row.values.map((value, at) => {
      const share = middle ? Math.min(1, value / middle / MOST) : 0;
      return s("g", {},
        s("title", {}, `${row.name}, ${column} ${columns[at]}: ${row.show(value)}${middle ? `, ${number(value / middle)} times the mean` : ""}`),
        s("rect", { class: "cell", x: space + at * wide + 1, y: top + 1, width: wide - 2, height: CELL - 2, "fill-opacity": (share * 0.85).toFixed(3) }),
        s("text", { class: share > 0.72 ? "on-dark" : "", x: space + (at + 0.5) * wide, y: top + CELL - 9, "text-anchor": "middle" }, row.show(value)));
    }),
    s("text", { x: space + columns.length * wide + 8, y: top + CELL - 9, class: worst > 1.5 ? "uneven" : "" }, worst === null ? "–" : `${number(worst)}×${worst > 1.5 ? " !" : ""}`));
}

const asTable = (columns, rows, label, column) => h("div", { class: "scroll" }, h("table", {},
  h("caption", {}, label),
  h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "figure"), columns.map((name) => h("th", { scope: "col", class: "number" }, `${column} ${name}`)))),
  h("tbody", {}, rows.map((row) => h("tr", {}, h("th", { scope: "row" }, row.name), row.values.map((value) => h("td", { class: "number" }, row.show(value))))))));
