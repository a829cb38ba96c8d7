// What views are made of: elements, numbers, tables, charts. Whatever comes from a job goes through `textContent` or
// `setAttribute`, so that no name and no value is ever read as markup.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element: `h("p", { class: "note" }, "text", child)`; attributes that start with `on` are listeners. */
export const h = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);

/** The same for SVG. */
export const s = (tag, attributes = {}, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const few = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

/** 1234567 as "1,234,567", 0.1234 as "0.123"; what is not known as a dash. */
export const number = (value) =>
  value === null || value === undefined ? "–" : Number.isInteger(value) ? whole.format(value) : few.format(value);

/** 1234567 as "1.23M". */
export const compact = (value) => (value === null || value === undefined ? "–" : short.format(value));

/** 0.25 as "25 %". */
export const percent = (value) => (value === null || value === undefined ? "–" : `${few.format(100 * value)} %`);

/** A size in bytes. */
export function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "KB", "MB", "GB", "TB"];
  let at = 0;
  while (value >= 1000 && at + 1 < units.length) { value /= 1000; at += 1; }
  return `${few.format(value)} ${units[at]}`;
}

/** A span in microseconds, in the unit that suits it. */
export function duration(microseconds) {
  if (microseconds === null || microseconds === undefined) return "–";
  const units = [["d", 86400e6], ["h", 3600e6], ["min", 60e6], ["s", 1e6], ["ms", 1e3], ["µs", 1]];
  const [unit, size] = units.find(([, size]) => Math.abs(microseconds) >= size) || (microseconds ? ["ns", 1e-3] : ["s", 1e6]);
  return `${few.format(microseconds / size)} ${unit}`;
}

/** A span in seconds. */
export const seconds = (value) => (value === null || value === undefined ? "–" : duration(value * 1e6));

/** How far an event is behind the clock. */
export const behind = (value) => (Math.abs(value) >= 86_400 ? "over a day" : seconds(value));

/** Rows a second, of a summary of times. */
export const rate = (times) => number(times?.rows_per_second && Math.round(times.rows_per_second));

/** A column of numbers. */
export const counter = (title, name = title) => ({ title, number: true, value: (one) => one[name] });
export const DEAD = counter("dead letters", "rejected");

/** An event time, microseconds since 1970, in UTC. */
export function time(microseconds) {
  if (microseconds === null || microseconds === undefined) return "–";
  const date = new Date(microseconds / 1000);
  return Number.isNaN(date.getTime()) ? number(microseconds) : date.toISOString().replace("T", " ").replace(/\.?0*Z$/, "");
}

const day = new Intl.DateTimeFormat("en", { month: "short", day: "numeric" });
const hour = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

/** A time of the browser's clock, given in seconds since 1970: "12:01:05", with the day where it is not today. */
export function clock(since, now = Date.now()) {
  if (since === null || since === undefined) return "";
  const date = new Date(since * 1000);
  return (new Date(now).toDateString() === date.toDateString() ? "" : `${day.format(date)} `) + hour.format(date);
}

export const remedy = (text) => `Remedy: ${text}${/[.?!]$/.test(text) ? "" : "."}`;

/** An error with its remedy, and what follows them. */
export const problem = (error, ...more) => h("div", { class: "problem", role: "alert" }, h("p", {}, error.message), error.remedy ? h("p", {}, remedy(error.remedy)) : null, more);

/** What waits at the sources. */
export const waits = (backlog) => Object.entries(backlog || {}).map(([stream, waiting]) => `${stream}: ${number(waiting)}`).join(", ") || "not known";

const clocks = new Map();

/** Remember when steps ended: pairs of a step and seconds since 1970. */
export function keepClocks(pairs) {
  clocks.clear();
  for (const [step, ended] of pairs) clocks.set(step, ended);
}

/** "step 7, 12:01:05"; only the step where its clock time is not known. */
export const stepText = (step) => [`step ${number(step)}`, clock(clocks.get(step))].filter(Boolean).join(", ");

/** How many there are of something: `count(1, "row")` is "1 row". */
export const count = (value, noun) => `${number(value)} ${value === 1 ? noun : `${noun}s`.replace("ys", "ies")}`;

/** A table. `columns` are `{ title, value: row => anything or an element, number: true }`; long ones show `most` rows. */
export function table(columns, rows, { caption = null, most = 200, empty = "Nothing yet." } = {}) {
  if (!rows.length) return h("p", { class: "empty" }, empty);
  const cell = (column, row) => {
    const value = column.value(row);
    const shown = column.number && typeof value === "number" ? number(value) : value ?? "–";
    return h("td", { class: column.number ? "number" : column.brief ? "brief" : column.long ? "long" : null }, shown);
  };
  const body = rows.slice(0, most).map((row) => h("tr", {}, columns.map((column) => cell(column, row))));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption || "Table" },
    h("table", {},
      caption ? h("caption", {}, caption) : null,
      h("thead", {}, h("tr", {}, columns.map((c) => h("th", { scope: "col", class: c.number ? "number" : null }, c.title)))),
      h("tbody", {}, body)),
    rows.length > most ? h("p", { class: "empty" }, `${number(rows.length - most)} more`) : null);
}

/** Draw again. Open details stay open. Typed text stays while it is `about` the same query, unless the field began with another text. */
export function redraw(element, children, about) {
  const open = new Set([...element.querySelectorAll("details[open]")].map((one) => one.id));
  const typed = new Map([...element.querySelectorAll("[data-keep]")].map((one) => [one.id, [one.dataset.keep, one.value]]));
  const same = element.dataset.about === about;
  element.dataset.about = about;
  element.replaceChildren(...children.flat(Infinity).filter(Boolean));
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  for (const [id, [initial, value]] of typed) {
    const field = document.getElementById(id);
    if (same && field && field.dataset.keep === initial) field.value = value;
  }
}

const WORDS = { unknown: "may be running", saved: "not started" };

/** The state of a job as a coloured word, from its `life`. */
export const badge = (life) => h("span", { class: `badge ${life ? life.word : "failed"}` }, life ? WORDS[life.word] || life.word : "not readable");

/** A span up to now, in words: "since 12:01:05, 2 h". */
export const since = (at, now = Date.now()) => (at === null || at === undefined ? "–" : `${clock(at, now)}, ${seconds(Math.max(0, Math.round(now / 1000 - at)))}`);

/** A list of names and values. */
export const facts = (pairs) =>
  h("dl", { class: "facts" }, pairs.filter(Boolean).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value ?? "–"))));

/** A bar for a share from 0 to 1, with its number beside it. */
export const meter = (share, label) =>
  h("span", { class: "meter" }, h("meter", { min: 0, max: 1, value: Math.min(1, Math.max(0, share || 0)), "aria-label": label }), ` ${percent(share)}`);

/** A button. `context.canControl` says whether commands are taken: without, it is there, off, and says why. */
export function commandButton(context, label, command, { confirm = null, primary = false, disabled = false } = {}) {
  const off = !context.canControl || disabled;
  return h("button", {
    type: "button", class: primary ? "primary" : null, disabled: off, title: context.canControl ? null : context.whyNot,
    onclick: async (event) => {
      const button = event.currentTarget;
      const question = typeof confirm === "function" ? await confirm() : confirm;
      if (question && !window.confirm(question)) return;
      button.disabled = true;
      await context.send(typeof command === "function" ? command() : command);
    },
  }, label);
}

/** Colours that the colour-blind can tell apart (Okabe and Ito), as CSS has them for dark and for light. */
export const COLOURS = ["--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7"];

/** What a colour of the style sheet is at present. */
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const WHOLE = [...Array(9).keys()].flatMap((power) => [1, 2, 5].map((one) => one * 10 ** power));

/** A chart of lines over steps: `series` are `{ label, values, unit: value => text }`; each has a dash of its own too. */
export function chart(element, title, xs, series, { height = 180, x = "step", marks = [] } = {}) {
  const box = h("figure", { class: "chart" }, h("figcaption", {}, title));
  element.append(box);
  const dashes = [[], [6, 4], [2, 3], [10, 4, 2, 4], [1, 6], [12, 3], [4, 2, 1, 2]];
  const axis = { stroke: () => colour("--ink-2"), grid: { stroke: () => colour("--line"), width: 1 }, ticks: { show: false } };
  const drawMarks = (u) => {
    for (const mark of marks) {
      const at = Math.round(u.valToPos(mark.at, "x", true));
      if (at < u.bbox.left || at > u.bbox.left + u.bbox.width) continue;
      u.ctx.save();
      u.ctx.strokeStyle = colour("--ink-2");
      u.ctx.setLineDash([3, 3]);
      u.ctx.beginPath();
      u.ctx.moveTo(at, u.bbox.top);
      u.ctx.lineTo(at, u.bbox.top + u.bbox.height);
      u.ctx.stroke();
      u.ctx.restore();
    }
  };
  // Without a pointer the legend has the values of the newest step.
  const newest = (u) => u.setLegend({ idx: xs.length - 1 });
  const plot = new window.uPlot({
    width: Math.max(240, box.clientWidth || element.clientWidth || 600), height,
    scales: { x: { time: false } }, padding: [null, 30, null, null],
    axes: [{ ...axis, label: xs.some((one) => clocks.has(one)) ? `${x}, and when it ended` : x, labelSize: 16, size: 50, space: 80, incrs: WHOLE, values: (u, ticks) => ticks.map((tick) => [number(tick), clock(clocks.get(tick))].filter(Boolean).join("\n")) }, { ...axis, size: 60, values: (u, ticks) => ticks.map((tick) => (series[0].unit || compact)(tick)) }],
    series: [{ label: x, value: (u, value) => (value === null || value === undefined ? "–" : stepText(value).replace(/^step /, "")) }, ...series.map((one, at) => ({
      label: one.label, stroke: () => colour(COLOURS[at % COLOURS.length]), width: 2, dash: dashes[at % dashes.length],
      points: { show: xs.length < 40 }, value: (u, value) => (value === null || value === undefined ? "–" : (one.unit || number)(value)),
    }))],
    hooks: { drawAxes: [drawMarks], ready: [newest], setCursor: [(u) => { if (u.cursor.idx === null || u.cursor.idx === undefined) newest(u); }] },
  }, [xs, ...series.map((one) => one.values)], box);
  const watcher = new ResizeObserver(() => {
    if (!box.isConnected) { watcher.disconnect(); plot.destroy(); }
    else if (box.clientWidth && Math.abs(box.clientWidth - plot.width) > 4) plot.setSize({ width: box.clientWidth, height });
  });
  watcher.observe(box);
  return plot;
}
