// What can be commanded: each form makes one command, as the command log has it, and the page shows what becomes of it.

import { h } from "./lib.js";

const field = (id, label, attributes = {}) => h("label", { for: id }, label, " ", h("input", { id, "data-keep": true, autocomplete: "off", spellcheck: "false", ...attributes }));
const value = (id) => document.getElementById(id).value.trim();

function form(context, id, title, fields, label, command, { sure = null, danger = false } = {}) {
  return h("form", {
    class: "control", id, onsubmit: (event) => {
      event.preventDefault();
      if (!context.canControl || (sure && !window.confirm(sure))) return;
      void context.send(command());
    },
  }, h("fieldset", { disabled: !context.canControl }, h("legend", {}, title), fields, h("button", { type: "submit", class: danger ? "danger" : null }, label)));
}

/** All forms; those of a query only where there is one. Without the right to command they are off and say why. */
export function controls(data, context) {
  const query = data.query;
  const strategies = h("label", { for: "migrate-strategy" }, "Strategy ",
    h("select", { id: "migrate-strategy", "data-keep": true }, (data.strategies || []).map((one) => h("option", { value: one }, one))));
  const text = (id, label, initial = "") => h("label", { for: id, class: "wide" }, label, " ", h("textarea", { id, "data-keep": true, rows: 3, spellcheck: "false" }, initial));
  const lanes = data.lane_review?.proposal;
  const waits = lanes?.state === "waits";
  const button = (id, label, command) => h("button", { type: "button", id, disabled: !context.canControl, onclick: () => context.send(command) }, label);
  return h("details", { id: "controls" },
    h("summary", {}, "Commands"),
    context.canControl ? null : h("p", { class: "quiet", id: "why-not" }, `Off: ${context.whyNot}.`),
    query ? form(context, "migrate", "Migrate to another plan", [field("migrate-plan", "Plan", { placeholder: data.plan, required: true }), strategies,
      data.mates.count ? h("label", { for: "migrate-together" }, h("input", { type: "checkbox", id: "migrate-together" }), " with all that share it") : null],
      "Migrate", () => ({ command: "migrate", query, plan: value("migrate-plan"), strategy: value("migrate-strategy"), together: Boolean(document.getElementById("migrate-together")?.checked) })) : null,
    query ? form(context, "pin", data.pinned ? "The plan is pinned" : "Keep this plan", [], data.pinned ? "Unpin" : "Pin", () => ({ command: data.pinned ? "unpin" : "pin", query })) : null,
    form(context, "rescale", "Number of lanes", [field("rescale-lanes", "Lanes", { type: "number", min: 1, required: true, value: context.overview.lanes })], "Rescale",
      () => ({ command: "rescale", lanes: Number(value("rescale-lanes")) })),
    waits ? h("p", { class: "buttons" }, `${lanes.lanes} lanes are proposed: `, button("approve-lanes", "Approve", { command: "approve_lanes", lanes: lanes.lanes }), button("reject-lanes", "Reject", { command: "reject_lanes", lanes: lanes.lanes })) : null,
    query ? form(context, "change", "Change the query", [text("change-sql", "SQL", data.sql)], "Change", () => ({ command: "change_query", query, sql: value("change-sql") })) : null,
    form(context, "add", "Add a query", [field("add-name", "Name", { required: true }), text("add-sql", "SQL")], "Add", () => ({ command: "add_query", query: value("add-name"), sql: value("add-sql") })),
    query ? form(context, "drop", "End the query", [], "Drop", () => ({ command: "drop_query", query }), { sure: `End the query ${query}? What no other query reads is let go.`, danger: true }) : null);
}
