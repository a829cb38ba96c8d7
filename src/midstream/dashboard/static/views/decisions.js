// The optimizer's decisions about a query: reasons, forecast and real costs, and the buttons to answer.

import { about, choice, controls, proposal, question } from "../controls.js";
import { chartPanels } from "../chart_panels.js";
import { bytes, chart, commandButton, counter, duration, facts, h, number, percent, redraw, table } from "../lib.js";
import { timeLine } from "../time_line.js";

const SHOWN = 60;
const DECISIONS = { stay: "stays", suggest: "suggests", ask: "asks", switch: "switches" };

export function render(element, data, context) {
  if (!data.query) {
    element.replaceChildren(h("p", { class: "empty" }, "This job has no query yet."));
    return;
  }
  const charts = h("div", { class: "charts" });
  redraw(element, [
    h("h2", { id: "query-name" }, data.query),
    h("p", {}, h("code", { class: "plan" }, data.plan)),
    proposal(data, context),
    facts([
      ["optimizer", data.pinned ? "the plan is pinned" : data.mode], ["policy", data.policy], ["reviews kept", number(data.reviews.length + data.left_out)],
      data.decision ? ["last decision", `${data.decision}: ${data.reason}`] : null,
    ]),
    data.reviews.length || data.others.length ? timeLine(marks(data, context), `Reviews and changes of ${data.query}`) : h("p", { class: "empty" }, nothing(data)),
    charts,
    shown(data, context),
    chartPanels(data.panels),
    h("details", { id: "reviews" }, h("summary", {}, "Reviews as a table"), reviews(data, context)),
    h("details", { id: "events" }, h("summary", {}, "What else happened, as a table"), others(data)),
    controls(data, context),
  ], about(data, context));
  costs(charts, data);
}

const nothing = (data) => (data.mode === "off" ? "The optimizer is off for this query: nothing is reviewed." : data.pinned
  ? "The plan is pinned: nothing is reviewed." : data.decision ? "The reviews are older than the events that are kept." : "No review yet.");

/** A cost as the objective counts it: work, where that is time alone. */
const cost = (value, data) => (value === null || value === undefined ? "–" : data.timed ? `${duration(value / 1000)}/s` : number(value));

function marks(data, context) {
  const found = data.reviews.map((one) => ({
    at: one.step, row: "reviews", kind: one.decision, text: `Step ${one.step}: the optimizer ${DECISIONS[one.decision] || one.decision}${one.chosen ? `: ${one.chosen}` : ""}. ${one.reason}`,
    current: one.step === data.shown?.step, choose: () => context.go({ review: String(one.step) }),
  }));
  for (const one of data.others) {
    found.push({ at: one.step, row: one.event.startsWith("migration") ? "migrations" : "changes", kind: one.event, text: `Step ${one.step}: ${said(one)}` });
  }
  return found;
}

/** An event in words. */
function said(one) {
  const words = {
    proposal_closed: () => `the proposal of ${one.plan} was ${one.state}`, migration_begun: () => `migration by ${one.strategy} from ${one.old} to ${one.new} begins`,
    migration_ended: () => `migration by ${one.strategy} to ${one.plan} is over, after ${number(one.comparisons)} comparisons`,
    plan_pinned: () => (one.pinned ? "the plan was pinned" : "the plan was unpinned"), optimizer_set: () => `the optimizer was set: ${one.mode}, ${one.policy}`,
    query_added: () => `the query was added with ${one.plan}`, query_changed: () => "the query got another text", review_failed: () => "a review failed",
    lanes_reviewed: () => `lanes: ${one.decision}, ${one.chosen || one.lanes}`, lanes_proposal_closed: () => `the proposal of ${one.lanes} lanes was ${one.state}`,
    lanes_rescaled: () => `from ${one.old} to ${one.new} lanes`, command_refused: () => `${one.command?.command} was refused`,
  }[one.event];
  return `${words ? words() : one.event}${one.reason ? `: ${one.reason}` : ""}`;
}

/** Foreseen and real cost of the running plan, and that of the cheapest one, review by review. */
function costs(element, data) {
  if (data.reviews.length < 2) return;
  const unit = (value) => cost(value, data);
  const values = (name) => data.reviews.map((one) => one[name] ?? null);
  chart(element, data.timed ? "Work for a second of event time" : "Cost", data.reviews.map((one) => one.step), [
    { label: "running plan, foreseen", values: values("foreseen"), unit }, { label: "running plan, real", values: values("real"), unit },
    { label: "cheapest plan, foreseen", values: values("best_cost"), unit },
  ]);
}

/** One review: the ranked plans with why each was taken or lost, and what was known. */
function shown(data, context) {
  const one = data.shown;
  if (!one) return null;
  const sources = Object.entries(one.figures?.sources || {});
  const plans = one.plans || [];
  const most = Math.max(...plans.map((each) => each.cost), 0);
  return h("section", { id: "review", "aria-labelledby": "review-of" },
    h("h3", { id: "review-of" }, `Review in step ${one.step}: ${one.decision}${one.chosen ? `, ${one.chosen}` : ""}`),
    h("p", {}, `Why: ${one.reason}.`),
    facts([
      ["ran", h("code", { class: "plan" }, one.plan)], ["policy", one.policy], ["foreseen", cost(one.figures?.foreseen, data)], ["real", cost(one.figures?.real, data)],
      one.switch?.strategy ? ["the move", `by ${one.switch.strategy}, ${data.timed ? `${duration(one.switch.work / 1000)} of work` : number(one.switch.work)}, ${duration((one.switch.silence || 0) * 1e6)} without results`] : null,
      ["streams", sources.map(([alias, known]) => `${alias}: ${number(known.rate)} rows/s, ${number(known.rows)} in its window`).join("; ") || "–"],
    ]),
    plans.length ? h("p", {}, choice("plan-strategy", "A migration to one of these goes by", data.strategies)) : null,
    table([
      { title: "plan", value: (each) => h("code", { class: "plan" }, each.plan) },
      { title: "cost", number: true, value: (each) => cost(each.cost, data) },
      { title: "of the highest cost", value: (each) => h("meter", { min: 0, max: most || 1, value: each.cost, "aria-label": `cost of ${each.plan}` }) },
      { title: "cost range", number: true, value: (each) => (each.low === each.high ? "–" : `${cost(each.low, data)} to ${cost(each.high, data)}`) },
      { title: "state", number: true, value: (each) => bytes(each.memory) },
      { title: "of the running plan's", number: true, value: (each) => percent(each.share) }, { title: "why", value: (each) => each.why },
      { title: "", value: (each) => (each.plan === data.plan ? "runs" : commandButton(context, "Migrate", () => ({ command: "migrate", query: data.query, plan: each.plan, strategy: document.getElementById("plan-strategy").value }), { confirm: () => question(data, context, each.plan).then((found) => found.question, () => null) })) },
    ], plans, { caption: "Plans, the cheapest first", empty: "This review weighed no plans." }));
}

const reviews = (data, context) => table([
  { title: "step", value: (one) => h("button", { type: "button", onclick: () => context.go({ review: String(one.step) }) }, `step ${one.step}`) },
  { title: "decision", value: (one) => one.decision }, { title: "plan", value: (one) => one.plan }, { title: "chosen", value: (one) => one.chosen || "–" },
  { title: "foreseen", number: true, value: (one) => cost(one.foreseen, data) }, { title: "real", number: true, value: (one) => cost(one.real, data) },
  { title: "why", value: (one) => one.reason },
], [...data.reviews].reverse(), { caption: "Reviews, the newest first", most: SHOWN });

const others = (data) => table([
  counter("step"), { title: "what happened", value: said },
], [...data.others].reverse(), { caption: "What else happened, the newest first", most: SHOWN });
