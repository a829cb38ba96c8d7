// A bar for each step, as long as it took, in the colours of its phases; a line where the trigger's interval ends.

import { h, number, s, seconds, stepText } from "./lib.js";

const WIDTH = 1000;
const HEIGHT = 200;
const LEFT = 64;
const BELOW = 18;
const MOST = 120;

/** The newest steps, each a stack of its `phases`. */
export function stepBars(times, phases) {
  const shown = times.slice(-MOST);
  const interval = Math.max(...shown.map((one) => one.interval || 0));
  const most = Math.max(interval, ...shown.map((one) => one.seconds)) || 1;
  const tall = (value) => (value / most) * HEIGHT;
  const wide = (WIDTH - LEFT) / Math.max(shown.length, 20);
  const label = `Seconds of the last ${number(shown.length)} steps, by phase`;
  const ends = interval ? HEIGHT - tall(interval) + 1 : 0;
  return h("figure", { class: "step-bars" },
    h("figcaption", {}, `${label}; each is as long as the step took`, interval ? `, the dashed line is the trigger's ${seconds(interval)}` : ""),
    h("ul", { class: "key" }, phases.map((name, at) => h("li", {}, h("span", { class: `swatch plan-${at % 7}` }, String(at + 1)), ` ${name}`))),
    s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT + BELOW}`, role: "img", "aria-label": label },
      shown.map((one, at) => bar(one, phases, LEFT + at * wide, wide, tall)),
      interval ? s("line", { class: "interval", x1: LEFT, x2: WIDTH, y1: ends, y2: ends }) : null,
      s("text", { x: LEFT - 6, y: 12, "text-anchor": "end" }, seconds(most)), s("text", { x: LEFT - 6, y: HEIGHT, "text-anchor": "end" }, "0"),
      s("text", { x: LEFT, y: HEIGHT + 15 }, stepText(shown[0].step)),
      s("text", { x: Math.min(WIDTH, LEFT + shown.length * wide), y: HEIGHT + 15, "text-anchor": "end" }, shown.length > 12 ? stepText(shown.at(-1).step) : "")));
}

function bar(one, phases, x, wide, tall) {
  let top = HEIGHT;
  const parts = phases.map((name, at) => {
    const high = tall(one.phases[name] || 0);
    top -= high;
    return high > 0 ? s("rect", { class: `plan-${at % 7}`, x: x + wide * 0.1, y: top, width: wide * 0.8, height: high }) : null;
  });
  const text = phases.filter((name) => one.phases[name]).map((name) => `${name}: ${seconds(one.phases[name])}`);
  return s("g", { class: "step-bar", "data-step": one.step },
    s("title", {}, [`${stepText(one.step).replace("step", "Step")}: ${seconds(one.seconds)}`, ...text].join("\n")),
    s("rect", { class: "whole", x: x + wide * 0.1, y: HEIGHT - tall(one.seconds), width: wide * 0.8, height: tall(one.seconds) }), parts);
}
