// A plan drawn as a graph, sources to the left, results to the right.

import * as dagre from "./vendor/dagre.esm.js";
import { bytes, compact, duration, number, percent, s } from "./lib.js";

const LINE = 16;
const PAD = 8;
const WIDTHS = [90, 56, 44, 34]; // letters a line: the most that there is room for

const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** The text in the box of an operator; `most` letters a line. */
function lines(node, value, most) {
  const { figures } = node;
  const head = short(node.label.replace(/^window_join /, "join "), most);
  const stream = node.streams[0];
  const states = node.states.map((state) => `${state.complete ? "▪" : "▫"} ${short(state.name.replace(" (of a plan in transition)", ""), most - 14)}: ${compact(state.rows)}${state.complete ? "" : ", not complete"}${state.plans.length === 2 ? ", shared" : ""}`);
  // A plan that does not run has no figures.
  if (value.steps === null) return [head, ...states];
  if (node.kind === "source") return [head, ...(node.sources[0] === stream ? [] : [short(`stream ${stream}`, most)]), `${compact(figures.rows_out)} rows`];
  if (node.kind === "transition") return ["results, each once"];
  const held = node.states.reduce((sum, state) => sum + state.bytes, 0);
  return [head, `${compact(figures.comparisons)} comparisons${node.share === null ? "" : ` (${percent(node.share)})`}`, `${compact(figures.rows_out)} rows out, ${number(node.selectivity)} a row in`,
    `about ${duration(node.work / 1000 / Math.max(1, value.steps))} a step, ${bytes(held)} held`,
    ...states];
}

const side = (plans) => (plans.length === 1 ? plans[0] : "both");

/** The graph as an SVG element, with a box for each operator. Texts are cut only where `room`, in pixels, is too little. */
export function graph(value, data, room = document.getElementById("main").clientWidth - 32) {
  const kept = new Map(value.nodes.map((node) => [node.id, node]));
  let layout = null;
  for (const most of WIDTHS) if (!layout || layout.graph().width > room) layout = placed(value, most);
  const { width, height } = layout.graph();
  const name = `Plan ${data.plan} of ${data.query}: ${value.nodes.length} operators`;
  return s("svg", { class: "plan-graph", viewBox: `0 0 ${width || 10} ${height || 10}`, width: width || 10, height: height || 10, role: "img", "aria-label": name },
    s("defs", {}, ["both", "old", "new"].map((one) => s("marker", { id: `arrow-${one}`, class: `arrow ${one}`, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, s("path", { d: "M0 0 8 4 0 8z" })))),
    layout.edges().map((edge) => arrow(layout, edge, kept)),
    layout.nodes().map((id) => box(layout.node(id), kept.get(id))));
}

function placed(value, most) {
  const layout = new dagre.graphlib.Graph();
  layout.setGraph({ rankdir: "LR", nodesep: 18, ranksep: 46, marginx: 8, marginy: 8 });
  layout.setDefaultEdgeLabel(() => ({}));
  for (const node of value.nodes) {
    const text = lines(node, value, most);
    layout.setNode(node.id, { text, width: Math.max(90, ...text.map((line) => line.length * 7.4)) + 2 * PAD, height: text.length * LINE + 2 * PAD });
  }
  for (const edge of value.edges) layout.setEdge(edge.from, edge.to);
  dagre.layout(layout);
  return layout;
}

function arrow(layout, edge, kept) {
  const from = side(kept.get(edge.v).plans);
  const to = side(kept.get(edge.w).plans);
  const plan = kept.get(edge.w).kind === "transition" ? from : to;
  const { points } = layout.edge(edge);
  const path = points.map(({ x, y }, at) => `${at ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join(" ");
  return s("path", { class: `edge ${plan}`, d: path, "marker-end": `url(#arrow-${plan})` });
}

function box(place, node) {
  const left = place.x - place.width / 2;
  const top = place.y - place.height / 2;
  const heat = node.share ? Math.min(0.35, node.share * 0.45) : 0;
  return s("g", { class: `node ${node.kind} ${side(node.plans)}`, "data-plans": node.plans.join(" ") },
    s("title", {}, `${node.label}\n${node.sources.join(", ")}${node.plans.length ? `\npart of: ${node.plans.join(" and ")} plan` : ""}`),
    s("rect", { class: "back", x: left, y: top, width: place.width, height: place.height, rx: 5 }),
    s("rect", { class: "heat", x: left, y: top, width: place.width, height: place.height, rx: 5, "fill-opacity": heat.toFixed(3) }),
    place.text.map((text, at) => s("text", { class: at ? "figure" : "name", x: left + PAD, y: top + PAD + (at + 0.75) * LINE }, text)));
}
