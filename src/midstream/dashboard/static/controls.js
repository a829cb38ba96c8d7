// What can be commanded: each form makes one command, as the command log has it, and the page shows what becomes of it.

import { h, percent } from "./lib.js";

const field = (id, label, attributes = {}) => h("label", { for: id }, label, " ", h("input", { id, "data-keep": attributes.value ?? "", autocomplete: "off", spellcheck: "false", ...attributes }));
const value = (id) => document.getElementById(id).value.trim();

/** A list to choose from; what is chosen stays when the page is drawn again. */
export const choice = (id, label, options, chosen = null) => h("label", { for: id }, label, " ",
  h("select", { id, "data-keep": chosen ?? "" }, options.map((one) => h("option", { value: one, selected: one === chosen }, one))));

/** What the fields of a page are about: a query of a job. */
export const about = (data, context) => JSON.stringify([context.index, data.query]);

function form(context, id, title, fields, label, command, { sure = null, danger = false } = {}) {
  return h("form", {
    class: "control", id, onsubmit: (event) => {
      event.preventDefault();
      if (!context.canControl || (sure && !window.confirm(sure))) return;
      void context.send(command());
    },
  }, h("fieldset", { disabled: !context.canControl }, h("legend", {}, title), fields, h("button", { type: "submit", class: danger ? "danger" : null }, label)));
}

/** The plan that waits for a yes or a no, with its buttons. */
export function proposal(data, context) {
  const found = data.proposal;
  if (!found) return null;
  const answer = (command, label, primary) => h("button", {
    type: "button", id: `${command}-proposal`, class: primary ? "primary" : null, disabled: !context.canControl,
    title: context.canControl ? null : context.whyNot,
    onclick: () => context.send({ command, query: data.query, plan: found.plan }),
  }, label);
  return h("section", { class: "callout", "aria-labelledby": "proposed" },
    h("h3", { id: "proposed" }, "The optimizer proposes another plan"),
    h("p", {}, h("code", { class: "plan" }, found.plan), ` by ${found.strategy}, saves ${percent(found.gain)} of the work.`),
    data.reason ? h("p", { class: "quiet" }, `Why: ${data.reason}.`) : null,
    h("p", { class: "buttons" }, answer("approve", "Approve", true), answer("reject", "Reject", false)),
    context.canControl ? null : h("p", { class: "quiet" }, context.whyNot));
}

/** All forms; those of a query only where there is one. Without the right to command they are off and say why. */
export function controls(data, context) {
  const query = data.query;
  const strategies = choice("migrate-strategy", "Strategy", data.strategies || []);
  const text = (id, label, initial = "") => h("label", { for: id, class: "wide" }, label, " ", h("textarea", { id, "data-keep": initial, rows: 3, spellcheck: "false" }, initial));
  const lanes = data.lane_review?.proposal;
  const waits = lanes?.state === "waits";
  const button = (id, label, command) => h("button", { type: "button", id, disabled: !context.canControl, onclick: () => context.send(command) }, label);
  return h("details", { id: "controls" },
    h("summary", {}, "Commands"),
    context.canControl ? null : h("p", { class: "quiet", id: "why-not" }, `Off: ${context.whyNot}.`),
    query ? form(context, "migrate", "Migrate to another plan", [field("migrate-plan", "Plan", { placeholder: data.plan, required: true }), strategies,
      data.mates.count ? h("label", { for: "migrate-together" }, h("input", { type: "checkbox", id: "migrate-together" }), " with all that share it") : null],
      "Migrate", () => ({ command: "migrate", query, plan: value("migrate-plan"), strategy: value("migrate-strategy"), together: Boolean(document.getElementById("migrate-together")?.checked) })) : null,
    query ? optimizer(data, context) : null,
    query ? form(context, "pin", data.pinned ? "The plan is pinned" : "Keep this plan", [], data.pinned ? "Unpin" : "Pin", () => ({ command: data.pinned ? "unpin" : "pin", query })) : null,
    form(context, "rescale", "Number of lanes", [field("rescale-lanes", "Lanes", { type: "number", min: 1, required: true, value: context.overview.lanes })], "Rescale",
      () => ({ command: "rescale", lanes: Number(value("rescale-lanes")) })),
    waits ? h("p", { class: "buttons" }, `${lanes.lanes} lanes are proposed: `, button("approve-lanes", "Approve", { command: "approve", lanes: lanes.lanes }), button("reject-lanes", "Reject", { command: "reject", lanes: lanes.lanes })) : null,
    query ? form(context, "change", "Change the query", [text("change-sql", "SQL", data.sql)], "Change", () => ({ command: "change_query", query, sql: value("change-sql") })) : null,
    form(context, "add", "Add a query", [field("add-name", "Name", { required: true }), text("add-sql", "SQL"), field("add-plan", "Join order, if not that of FROM", { placeholder: "((A B) C)" })],
      "Add", () => ({ command: "add_query", query: value("add-name"), sql: value("add-sql"), ...(value("add-plan") ? { plan: value("add-plan") } : {}) })),
    query ? form(context, "drop", "End the query", [], "Drop", () => ({ command: "drop_query", query }), { sure: `End the query ${query}? What no other query reads is let go.`, danger: true }) : null);
}

/** What the optimizer may do with the query; its other settings stay, but for the options of another policy. */
function optimizer(data, context) {
  return form(context, "optimize", "What the optimizer may do", [choice("optimize-mode", "Mode", data.modes, data.mode), choice("optimize-policy", "Policy", data.policies, data.policy)], "Set", () => {
    const { options, ...others } = data.settings;
    const [mode, policy] = [value("optimize-mode"), value("optimize-policy")];
    return { command: "optimize", query: data.query, settings: { ...others, mode, policy, ...(policy === data.policy && options ? { options } : {}) } };
  });
}
