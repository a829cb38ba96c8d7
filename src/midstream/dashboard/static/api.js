// Requests to the dashboard's own server. Answers are kept with their ETag: asked again, nothing is sent twice.

const known = new Map();
const KEPT = 60;

/** The token of control, for as long as this tab is open. */
export const token = () => sessionStorage.getItem("midstream-token");

/** Take the token out of the address that the dashboard printed, so that it stays in no history. */
export function takeToken() {
  const found = /(?:^#|&)token=([^&]+)/.exec(location.hash);
  if (!found) return;
  sessionStorage.setItem("midstream-token", decodeURIComponent(found[1]));
  history.replaceState(null, "", location.pathname);
}

/** What went wrong: the server's own message, place and remedy; `lost` where it did not answer. */
class Failure extends Error {
  constructor(message, { place = "", remedy = "", lost = false } = {}) {
    super(message);
    Object.assign(this, { place, remedy, lost });
  }
}

async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Failure("the dashboard does not answer", { lost: true });
  }
  if (answer.ok || answer.status === 304) return answer;
  const said = await answer.json().catch(() => ({}));
  throw new Failure(said.error || `the dashboard answered ${answer.status}`, said);
}

export const api = {
  async get(path) {
    const before = known.get(path);
    const answer = await ask(path, { cache: "no-store", headers: before ? { "If-None-Match": before.tag } : {} });
    if (answer.status === 304) return before.value;
    const value = await answer.json();
    const tag = answer.headers.get("ETag");
    if (tag) {
      known.delete(path);
      known.set(path, { tag, value });
      if (known.size > KEPT) known.delete(known.keys().next().value);
    }
    return value;
  },
  async post(path, value) {
    const headers = { "Content-Type": "application/json", "X-Midstream-Token": token() || "" };
    return (await ask(path, { method: "POST", headers, body: JSON.stringify(value) })).json();
  },
  /** Try something that changes nothing. */
  async attempt(index, value) {
    const found = await api.post(`/api/${index}/trial`, value);
    if (found.error) throw new Failure(found.error, found);
    return found;
  },
};
