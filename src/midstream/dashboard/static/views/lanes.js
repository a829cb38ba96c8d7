// How evenly the work lies over lanes, and over the nodes of joins that are spread.

import { bytes, commandButton, compact, count, duration, facts, h, number, percent, redraw, s, seconds } from "../lib.js";
import { heatMap } from "../heat_map.js";

const SHOW = { rows: compact, chunks: compact, bytes, nanoseconds: (value) => duration(value / 1000) };
const SIZE = 260;

export function render(element, data, context) {
  redraw(element, [
    h("h2", {}, `Lanes and nodes: ${count(data.lanes, "lane")}`),
    review(data.lane_review, context),
    data.groups.map((one) => group(one)),
    left(data.groups_left_out, "lane group"),
    data.rings.map((one) => ring(one)),
    left(data.rings_left_out, "join over nodes", "joins over nodes"),
    data.groups.length || data.rings.length ? null : h("p", { class: "empty" }, "No lane holds anything yet."),
  ], String(context.index));
}

const left = (many, one, more = `${one}s`) => (many ? h("p", { class: "empty" }, `${number(many)} ${many === 1 ? one : more} not shown.`) : null);

/** What the optimizer thinks of the number of lanes, with the buttons to answer it. */
function review(one, context) {
  const proposed = one.proposal?.state === "waits" ? one.proposal : null;
  return h("section", {},
    facts([
      ["the optimizer may", one.mode], one.decision ? ["last decision", `${one.decision}: ${one.reason}`] : null,
      one.took === null ? null : ["a step takes", seconds(one.took)], one.interval === null ? null : ["trigger", `every ${seconds(one.interval)}`],
    ]),
    proposed ? h("div", { class: "callout" }, h("h3", {}, `${count(proposed.lanes, "lane")} proposed`), h("p", {}, `Saves ${percent(proposed.gain)} of the time.`),
      h("p", { class: "buttons" }, commandButton(context, "Approve", { command: "approve", lanes: proposed.lanes }, { primary: true }), commandButton(context, "Reject", { command: "reject", lanes: proposed.lanes }))) : null);
}

function group(one) {
  const names = one.queries.first.slice(0, 4).join(", ") + (one.queries.count > 4 ? " …" : "");
  return h("section", {}, h("h3", {}, `Lanes of ${count(one.queries.count, "query")}: ${names}`),
    heatMap(one.lanes.map((each) => each.number), one.figures.map((each) => ({ name: each.name, values: each.values, show: SHOW[each.unit] })), { id: one.name, label: `Balance of ${count(one.lanes.length, "lane")}`, column: "lane" }),
    left(one.lanes_left_out, "lane"), left(one.states_left_out, "smaller state"));
}

function ring(one) {
  const figures = ["rows", "comparisons", "visits"].map((name) => ({ name, values: one.nodes.map((node) => node[name]), show: compact }));
  return h("section", { class: "ring" }, h("h3", {}, `Nodes of ${one.queries.slice(0, 4).join(", ")}${one.queries.length > 4 ? " …" : ""}: ${one.scheme}`),
    facts([
      ["nodes", number(one.nodes.length + one.nodes_left_out)], ["since step", number(one.since)], ["busiest node against the mean", one.balance === null ? "–" : `${number(one.balance)}×`],
      ["visits by hop", one.sent.map(number).join(", ") || "none"], ["their size", one.bytes.map(bytes).join(", ") || "–"], ["rows moved", number(one.moved)],
      one.foreseen ? ["results, foreseen", `${seconds(one.foreseen.seconds)} after their rows; soonest with ${count(one.foreseen.best, "node")}, ${seconds(one.foreseen.best_seconds)}`] : null,
      one.running_out.length ? ["rows run out of", one.running_out.map((each) => `${count(each.nodes, "node")} by ${each.scheme}`).join(", ")] : null,
    ]),
    h("div", { class: "ring-parts" }, circle(one), heatMap(one.nodes.map((_, at) => at), figures, { id: `nodes-${one.name}`, label: "Balance of the nodes", column: "node" })),
    h("details", { id: `slices-${one.name}` }, h("summary", {}, "What each node keeps, the newest of it"), h("ul", {}, one.nodes.map((node, at) =>
      h("li", {}, `node ${at}: ${Object.entries(node.slices).filter(([, own]) => own.length).map(([label, own]) => `${label} ${own.join(", ")}`).join("; ") || "nothing"}`)))),
    left(one.nodes_left_out, "node"));
}

/** The nodes on a circle, each the larger the more it compared. */
function circle(one) {
  const most = Math.max(1, ...one.nodes.map((node) => node.comparisons));
  const radius = SIZE / 2 - 40;
  const big = Math.min(30, (Math.PI * radius) / one.nodes.length);
  const place = (at, far = radius) => {
    const angle = (2 * Math.PI * at) / one.nodes.length - Math.PI / 2;
    return [SIZE / 2 + far * Math.cos(angle), SIZE / 2 + far * Math.sin(angle)];
  };
  return s("svg", { class: "circle", viewBox: `0 0 ${SIZE} ${SIZE}`, width: SIZE, height: SIZE, role: "img", "aria-label": `${count(one.nodes.length, "node")} in a ring; a larger disc has compared more` },
    s("circle", { class: "rail", cx: SIZE / 2, cy: SIZE / 2, r: radius }),
    one.nodes.map((node, at) => {
      const [x, y] = place(at);
      return s("g", {}, s("title", {}, `node ${at}: ${number(node.rows)} rows, ${number(node.comparisons)} comparisons, ${number(node.visits)} visits`),
        s("circle", { class: "back", cx: x, cy: y, r: big }), s("circle", { class: "disc", cx: x, cy: y, r: big * Math.sqrt(node.comparisons / most) }),
        s("text", { x, y: y + 4, "text-anchor": "middle" }, String(at)));
    }));
}
