// Marks on lines of steps. Each kind has its own shape, so nothing depends on colour alone.

import { h, s, stepText } from "./lib.js";

const WIDTH = 1000;
const HEIGHT = 30;
const LEFT = 124;
const SHAPES = {
  stay: (x, y) => `M${x - 3} ${y}a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z`,
  suggest: (x, y) => `M${x} ${y - 7}l7 7l-7 7l-7 -7z`,
  ask: (x, y) => `M${x} ${y - 7}l7 7l-7 7l-7 -7z`,
  switch: (x, y) => `M${x - 7} ${y + 6}l7 -13l7 13z`,
  migration_begun: (x, y) => `M${x - 4} ${y - 7}l11 7l-11 7z`,
  migration_ended: (x, y) => `M${x - 6} ${y - 6}h12v12h-12z`,
};
const other = (x, y) => `M${x - 1.5} ${y - 8}h3v16h-3z`;

/** `marks` are `{ at, row, kind, text, current, choose }`; those that can be chosen are reached by Tab. */
export function timeLine(marks, label) {
  const rows = [...new Set(marks.map((one) => one.row))];
  const steps = marks.map((one) => one.at);
  const [first, last] = [Math.min(...steps), Math.max(...steps)];
  const place = (at) => LEFT + 12 + ((WIDTH - LEFT - 24) * (at - first)) / Math.max(1, last - first);
  const tall = rows.length * HEIGHT + 22;
  return h("figure", { class: "time-line" },
    h("figcaption", {}, label, h("span", { class: "key" }, " · ● stays  ◆ proposes  ▲ switches  ▶ migration begins  ■ ends  ❙ other")),
    h("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": label },
      s("svg", { viewBox: `0 0 ${WIDTH} ${tall}`, role: "group", "aria-label": label },
        rows.map((row, at) => [
          s("text", { x: 0, y: at * HEIGHT + 20 }, row),
          s("line", { class: "rail", x1: LEFT, x2: WIDTH, y1: at * HEIGHT + 16, y2: at * HEIGHT + 16 }),
        ]),
        marks.map((one) => mark(one, place(one.at), rows.indexOf(one.row) * HEIGHT + 16)),
        s("text", { x: LEFT, y: tall - 4 }, stepText(first)),
        last > first ? s("text", { x: WIDTH, y: tall - 4, "text-anchor": "end" }, stepText(last)) : null)));
}

function mark(one, x, y) {
  const chosen = one.choose ? {
    tabindex: 0, role: "button", onclick: one.choose, "aria-pressed": one.current ? "true" : "false", id: `mark-${one.row}-${one.at}`,
    onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); one.choose(); } },
  } : { role: "img" };
  return s("g", { class: `mark ${one.row}${one.current ? " current" : ""}`, "data-kind": one.kind, "aria-label": one.text, ...chosen },
    s("title", {}, one.text),
    s("rect", { class: "reach", x: x - 8, y: y - 13, width: 16, height: 26 }),
    s("path", { d: (SHAPES[one.kind] || other)(x, y) }));
}
