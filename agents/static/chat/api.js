// How the page asks the API: who we are, one error shape, uploads with progress, streams that resume.

const KEY = "parley-token";
const page = document.body.dataset;
const ENDS = new Set(["RUN_FINISHED", "RUN_ERROR"]);
let issued = { text: "", until: 0 };

export const promptVersion = page.promptVersion;
export const entered = () => sessionStorage.getItem(KEY);
export const enter = (token) => sessionStorage.setItem(KEY, token);
export const forget = () => sessionStorage.removeItem(KEY);
export const isKnown = () => page.signedIn === "yes" || entered() !== null;

/** What the server said no with: `detail` is for people, `code` for us. */
export class Refused extends Error {
  constructor(status, body = {}, retryAfter = null) {
    super(body.detail || `The server answered ${status}.`);
    this.status = status;
    this.code = body.code || "";
    this.retryAfter = retryAfter;
  }
}

async function bearer(anew = false) {
  if (page.signedIn !== "yes") return entered() ?? "";
  if (!anew && Date.now() < issued.until) return issued.text;
  const csrf = document.querySelector("[name=csrfmiddlewaretoken]").value;
  const answer = await fetch("/chat/token", { method: "POST", headers: { "X-CSRFToken": csrf } });
  if (!answer.ok) throw new Refused(401, { code: "signed_out", detail: "You are signed out." });
  const { access_token: text, expires_in: seconds } = await answer.json();
  issued = { text, until: Date.now() + (seconds - 60) * 1000 };
  return text;
}

async function refusal(answer) {
  const body = await answer.json().catch(() => ({}));
  return new Refused(answer.status, body, Number(answer.headers.get("Retry-After")) || null);
}

/** The response, if it is a good one; a token that has just ended is replaced once. */
async function sent(path, options = {}, again = true) {
  const headers = { ...options.headers, Authorization: `Bearer ${await bearer(!again)}` };
  const answer = await fetch(path, { ...options, headers });
  if (answer.ok) return answer;
  if (answer.status === 401 && again && page.signedIn === "yes") return sent(path, options, false);
  throw await refusal(answer);
}

/** JSON in, JSON out; throws Refused, or TypeError if the server cannot be reached. */
export async function ask(path, { method = "GET", json, headers = {} } = {}) {
  const body = json === undefined ? undefined : JSON.stringify(json);
  const typed = body === undefined ? headers : { ...headers, "Content-Type": "application/json" };
  const answer = await sent(path, { method, body, headers: { Accept: "application/json", ...typed } });
  return answer.status === 204 ? null : answer.json();
}

/** Upload an image; `progress` is told the part that is done, from 0 to 1. */
export async function upload(file, progress, signal) {
  const token = await bearer();
  return new Promise((resolve, reject) => {
    const form = new FormData();
    form.append("file", file);
    const request = new XMLHttpRequest();
    request.open("POST", "/api/v1/agent/attachments");
    request.setRequestHeader("Authorization", `Bearer ${token}`);
    request.responseType = "json";
    request.upload.addEventListener("progress", (event) => progress(event.loaded / (event.total || 1)));
    request.addEventListener("load", () => {
      if (request.status === 201) resolve(request.response);
      else reject(new Refused(request.status, request.response ?? {}, Number(request.getResponseHeader("Retry-After")) || null));
    });
    request.addEventListener("error", () => reject(new TypeError("The upload was cut off.")));
    request.addEventListener("abort", () => reject(new DOMException("stopped", "AbortError")));
    signal.addEventListener("abort", () => request.abort());
    request.send(form);
  });
}

/**
 * Follow a run to its end: `take` gets every AG-UI event once from the first, whatever breaks off in
 * between (Last-Event-ID says how far we are). `state` is told "cut" while there is no connection.
 */
export async function follow(run, take, { signal, state = () => {} }) {
  let last = "", failures = 0;
  while (!signal.aborted) {
    try {
      const headers = { Accept: "text/event-stream", ...(last && { "Last-Event-ID": last }) };
      const answer = await sent(`/api/v1/agent/runs/${encodeURIComponent(run)}/events?dialect=ag-ui`, { headers, signal });
      state("live");
      for await (const frame of frames(answer.body)) {
        failures = 0;
        const event = JSON.parse(frame.data);
        take(event);
        if (frame.id) last = frame.id;
        if (ENDS.has(event.type)) return;
      }
    } catch (error) {
      if (signal.aborted) return;
      const passes = !(error instanceof Refused) || error.status === 429 || error.status >= 500;
      if (!passes || failures > 60) throw error;
    }
    failures += 1;
    state("cut");
    await new Promise((resolve) => setTimeout(resolve, Math.min(5000, 250 * 2 ** Math.min(failures, 5))));
  }
}

/** The server-sent events of a body: `{id, data}`; comments are skipped (WHATWG HTML §9.2). */
async function* frames(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", id = "", data = [];
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        if (!line) {
          if (data.length) yield { id, data: data.join("\n") };
          id = ""; data = [];
        } else if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
        else if (line.startsWith("id:")) id = line.slice(3).trim();
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** A signed URL of ours as the address on this page's own host; any other as it is. */
export function own(address) {
  const url = new URL(address, location.href);
  const ours = url.origin === new URL(page.publicUrl).origin && url.pathname.startsWith("/storage/v1/");
  return ours ? url.pathname + url.search : address;
}

const ADVICE = {
  signed_out: "Sign in again; what you wrote is still here.",
  token_expired: "Enter a new token.",
  model_not_allowed: "Choose another model above.",
  model_daily_quota_exceeded: "Choose another model, or come back tomorrow.",
  thread_busy: "Wait for the answer, or stop it first.",
  provider_auth_error: "Staff must check the key of this model's endpoint in admin.",
  provider_quota_exceeded: "Staff must look at the provider's account; another model may answer.",
  provider_rate_limited: "Wait a moment, then try again.",
  provider_context_exceeded: "Begin a new conversation, or say it shorter.",
  provider_content_filtered: "The provider refused this; say it in other words.",
  provider_model_not_found: "Staff must check the model's mapping in admin.",
  provider_address_refused: "Staff must enter another address for this model's endpoint in admin.",
  provider_unreachable: "Staff must check the endpoint's address; another model may answer.",
  provider_timeout: "Try again; a shorter question may help.",
  deadline_exceeded: "It took too long. Try again, or ask for less at once.",
  queue_timeout: "No worker was free in time. Try again later.",
  worker_lost: "A server process stopped while it answered. Try again.",
  quarantined: "It stopped two server processes, so it is not tried again. Tell staff.",
  answer_too_large: "What was said so far is kept. Ask for less at once.",
  log_too_large: "What was said so far is kept. Ask for less at once.",
  internal_error: "Try again; if it stays so, tell staff the request id in the server's log.",
  unsupported_media_type: "Attach a JPEG, PNG, WebP or GIF.",
  payload_too_large: "An image may have 10 MiB at most.",
  cancelled: "",
};

/** What went wrong and what to do about it, in two sentences at most. */
export function told(error) {
  if (error instanceof TypeError) return "The server cannot be reached. Check your connection and try again.";
  const wait = error.retryAfter ? ` Try again in ${error.retryAfter} seconds.` : "";
  return [error.message, wait || advice(error.code)].filter(Boolean).join(" ");
}

export const advice = (code) => ADVICE[code] ?? (code ? "Try again." : "");
