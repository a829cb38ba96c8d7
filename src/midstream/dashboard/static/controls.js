// What can be commanded: each form makes one command, as the command log has it, and the page shows what becomes of it.

import { api } from "./api.js";
import { duration, h, number } from "./lib.js";

const field = (id, label, attributes = {}) => h("label", { for: id }, label, " ", h("input", { id, "data-keep": attributes.value ?? "", autocomplete: "off", spellcheck: "false", ...attributes }));
const value = (id) => document.getElementById(id).value.trim();

/** A list to choose from; what is chosen stays when the page is drawn again. */
export const choice = (id, label, options, chosen = null) => h("label", { for: id }, label, " ",
  h("select", { id, "data-keep": chosen ?? "" }, options.map((one) => h("option", { value: one, selected: one === chosen }, one))));

/** What the fields of a page are about: a query of a job. */
export const about = (data, context) => JSON.stringify([context.index, data.query]);

function form(context, id, title, fields, label, command, { sure = null, danger = false } = {}) {
  return h("form", {
    class: "control", id, onsubmit: async (event) => {
      event.preventDefault();
      if (!context.canControl) return;
      const question = typeof sure === "function" ? await sure() : sure;
      if (!question || window.confirm(question)) void context.send(command());
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
    h("p", {}, h("code", { class: "plan" }, found.plan), ` by ${found.strategy}.`),
    data.reason ? h("p", { class: "quiet" }, `Why: ${data.reason}.`) : null,
    h("p", { class: "buttons" }, answer("approve", "Approve", true), answer("reject", "Reject", false)),
    context.canControl ? null : h("p", { class: "quiet" }, context.whyNot));
}

// These have buttons of their own where there is something to answer.
const BUTTONS = ["approve", "reject", "pin", "unpin"];

/** All forms; those of a query only where there is one. Without the right to command they are off and say why. */
export function controls(data, context) {
  const query = data.query;
  const lanes = data.lane_review?.proposal;
  const waits = lanes?.state === "waits";
  const button = (id, label, command) => h("button", { type: "button", id, disabled: !context.canControl, onclick: () => context.send(command) }, label);
  return h("details", { id: "controls" },
    h("summary", {}, "Commands"),
    context.canControl ? null : h("p", { class: "quiet", id: "why-not" }, `Off: ${context.whyNot}.`),
    query ? optimizer(data, context) : null,
    query ? form(context, "pin", data.pinned ? "The plan is pinned" : "Keep this plan", [], data.pinned ? "Unpin" : "Pin", () => ({ command: data.pinned ? "unpin" : "pin", query })) : null,
    waits ? h("p", { class: "buttons" }, `${lanes.lanes} lanes are proposed: `, button("approve-lanes", "Approve", { command: "approve", lanes: lanes.lanes }), button("reject-lanes", "Reject", { command: "reject", lanes: lanes.lanes })) : null,
    context.forms.filter((one) => !BUTTONS.includes(one.verb) && (query || !one.fields.some((field) => field.running))).map((one) => generated(one, data, context)));
}

/** The form of a command, as the server describes it: first what it asks always, then its options. */
function generated(described, data, context) {
  const { verb, command, title } = described;
  const asked = described.fields.filter((one) => !one.running);
  const about = described.fields.find((one) => one.running);
  const made = (one) => widget(`${verb}-${one.name}`, one, about ? data : {}, context);
  const [first, others] = [asked.filter((one) => one.first || one.choices), asked.filter((one) => !one.first && !one.choices)];
  const label = verb[0].toUpperCase() + verb.slice(1).replaceAll("-", " ");
  const given = () => {
    const found = about ? { command, [about.name]: data.query } : { command };
    for (const one of asked) {
      const read = taken(`${verb}-${one.name}`, one);
      if (read !== null) found[one.name] = read;
    }
    return found;
  };
  const ends = verb.startsWith("drop");
  const move = verb === "migrate" ? estimate(data, context) : null;
  return form(context, verb, title, [
    first.map(made), others.length ? h("details", { id: `more-${verb}` }, h("summary", {}, "Options"), others.map(made)) : null,
    move ? move.element : null,
  ], label, given, { danger: ends, sure: move ? move.question : ends ? `${title}${about ? ` It is ${data.query}.` : ""}` : null });
}

const PAUSE = 300;
const EMPTY = "Type a plan to see what it would cost.";

function costText(found) {
  const cost = found.cost === null ? `The cost is not known: ${found.why_none || "the plan is not a tree"}.`
    : `Costs ${number(found.cost / found.running)} times the running plan${found.timed ? `, ${duration(found.cost / 1000)} of work a second` : ""}.`;
  const move = found.strategy ? ` The move by ${found.strategy} costs ${found.timed ? `about ${duration(found.work / 1000)} of work` : number(found.work)}.` : "";
  return cost + move + (found.cross.length ? ` A cross join: ${found.cross.join("; ")}.` : "");
}

/** What a move to a plan would bring: as text; as a question, where its plan has a cross join. */
export async function question(data, context, plan) {
  const found = await api.attempt(context.index, { of: "move", query: data.query, plan });
  return { text: costText(found), question: found.cross.length ? `${costText(found)} Move the query to ${found.plan} all the same?` : null };
}

// The estimate is renewed while a plan is typed.
function estimate(data, context) {
  const element = h("p", { class: "quiet wide", id: "migrate-estimate", role: "status" }, EMPTY);
  let typing = 0;
  const renew = async () => {
    const plan = value("migrate-plan");
    if (!plan) return;
    const found = await question(data, context, plan).catch((error) => ({ text: error.message }));
    if (value("migrate-plan") === plan) element.textContent = found.text;
  };
  const listen = (event) => {
    if (event.target.id !== "migrate-plan") return;
    window.clearTimeout(typing);
    element.textContent = value("migrate-plan") ? "Estimating …" : EMPTY;
    typing = window.setTimeout(renew, PAUSE);
  };
  window.requestAnimationFrame(() => {
    element.closest("form")?.addEventListener("input", listen);
    if (element.isConnected && context.canControl) void renew();
  });
  return { element, question: () => question(data, context, value("migrate-plan")).then((found) => found.question, () => null) };
}

/** What is typed into for a field; a query's own text, and what the job has, is there already. */
function widget(id, one, data, context) {
  const label = one.name.replaceAll("_", " ");
  const attributes = { title: one.help || null };
  if (one.choices) return choice(id, label, one.choices);
  if (one.kind === "flag") return h("label", { for: id, ...attributes }, h("input", { type: "checkbox", id }), one.unset ? ` no ${label}` : ` ${label}`);
  if (one.long || one.kind === "named" || one.kind === "list") {
    const initial = one.long ? data[one.name] ?? "" : "";
    return h("label", { for: id, class: "wide", ...attributes }, one.kind === "named" ? `${label}, NAME=VALUE in each line` : label, " ",
      h("textarea", { id, "data-keep": initial, rows: one.long ? 3 : 1, spellcheck: "false" }, initial));
  }
  if (one.kind === "number") return field(id, label, { ...attributes, type: "number", min: one.least, max: one.most, required: one.required, value: context.overview[one.name] });
  return field(id, label, { ...attributes, required: one.required, placeholder: data[one.name] });
}

const value_of = (text) => { try { return JSON.parse(text); } catch { return text; } };
const named = (line) => { const at = line.indexOf("="); return [line.slice(0, at).trim(), value_of(line.slice(at + 1).trim())]; };

/** The value of a field as logs have it; null where nothing was given. */
function taken(id, one) {
  if (one.kind === "flag") return document.getElementById(id).checked ? !one.unset : null;
  const text = value(id);
  if (!text && !one.required) return null;
  const lines = () => text.split("\n").map((line) => line.trim()).filter(Boolean);
  return { number: () => Number(text), named: () => Object.fromEntries(lines().map(named)), list: lines, value: () => value_of(text) }[one.kind]?.() ?? text;
}

/** The form of the optimizer's mode and policy; its other settings stay. */
function optimizer(data, context) {
  return form(context, "optimize", "What the optimizer may do", [choice("optimize-mode", "Mode", data.modes, data.mode), choice("optimize-policy", "Policy", data.policies, data.policy)], "Set", () => {
    const { options, ...others } = data.settings;
    const [mode, policy] = [value("optimize-mode"), value("optimize-policy")];
    return { command: "optimize", query: data.query, settings: { ...others, mode, policy, ...(policy === data.policy && options ? { options } : {}) } };
  });
}
