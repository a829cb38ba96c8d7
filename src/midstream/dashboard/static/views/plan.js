import { h } from "../lib.js";

export function render(element, data) {
  element.replaceChildren(h("pre", {}, JSON.stringify(data, null, 2)));
}
