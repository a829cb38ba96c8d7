// Charts of plans over two dimensions each: which plan is the best one where, and the path of the streams over them.

import { h, number, percent, s } from "./lib.js";

const SIDE = 260;
const LEFT = 72;
const BELOW = 44;
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/** All panels with one key; a plan has the same letter and colour in each. */
export function chartPanels(panels) {
  if (!panels.length) return null;
  const plans = [...new Set(panels.flatMap((one) => one.plans))];
  return h("section", { class: "panels", "aria-labelledby": "panels" },
    h("h3", { id: "panels" }, "Which plan is the best one where, and where the streams have been"),
    h("p", { class: "quiet" }, "A letter is a plan; a circle is larger the more rounds were spent there; the line is the streams' path; the cross is where they are."),
    h("ul", { class: "key" }, plans.map((plan, at) => h("li", {}, h("span", { class: `swatch plan-${at % 7}` }, letter(at)), " ", h("code", {}, plan)))),
    h("div", { class: "panel-list" }, panels.map((one) => panel(one, plans))));
}

const letter = (at) => LETTERS[at % LETTERS.length] + (at >= LETTERS.length ? Math.floor(at / LETTERS.length) : "");

function panel(one, plans) {
  const cell = SIDE / one.k;
  const x = (at) => LEFT + (at + 0.5) * cell;
  const y = (at) => SIDE - (at + 0.5) * cell;
  const most = Math.max(1, ...one.rounds.map((each) => each.count));
  const scaled = (axis, value) => Math.min(1, Math.max(0, (value - axis.low) / (axis.high - axis.low))) * SIDE;
  const path = one.path.map(([across, up]) => `${(LEFT + scaled(one.across, across)).toFixed(1)},${(SIDE - scaled(one.up, up)).toFixed(1)}`).join(" ");
  const label = `Plans by ${one.across.label} and ${one.up.label}`;
  return h("figure", { class: "panel" },
    s("svg", { viewBox: `0 0 ${LEFT + SIDE + 8} ${SIDE + BELOW}`, role: "img", "aria-label": label },
      one.cells.map((row, up) => row.map((plan, across) => region(plans.indexOf(one.plans[plan]), x(across), y(up), cell))),
      one.rounds.map(({ at, count }) => s("circle", { class: "been", cx: x(at[0]), cy: y(at[1]), r: 2 + (cell / 2 - 3) * Math.sqrt(count / most) }, s("title", {}, `${number(count)} rounds`))),
      path ? s("polyline", { class: "path", points: path }) : null,
      one.here ? s("path", { class: "here", d: `M${x(one.here[0]) - 6} ${y(one.here[1]) - 6}l12 12m0 -12l-12 12` }) : null,
      s("text", { x: LEFT, y: SIDE + 14 }, number(one.across.low)), s("text", { x: LEFT + SIDE, y: SIDE + 14, "text-anchor": "end" }, number(one.across.high)),
      s("text", { x: LEFT + SIDE / 2, y: SIDE + 32, "text-anchor": "middle" }, one.across.label),
      s("text", { x: LEFT - 6, y: SIDE, "text-anchor": "end" }, number(one.up.low)), s("text", { x: LEFT - 6, y: 12, "text-anchor": "end" }, number(one.up.high)),
      s("text", { transform: `translate(14 ${SIDE / 2}) rotate(-90)`, "text-anchor": "middle" }, one.up.label)),
    h("figcaption", {}, `${label}: ${number(one.moves)} moves, ${number(one.switches)} switches${one.fidelity === null ? "" : `, run by the best plan ${percent(one.fidelity)} of the rounds`}`));
}

const region = (plan, x, y, cell) => [
  s("rect", { class: `region plan-${plan % 7}`, x: x - cell / 2, y: y - cell / 2, width: cell, height: cell }),
  s("text", { class: "letter", x, y: y + 4, "text-anchor": "middle" }, letter(plan)),
];
