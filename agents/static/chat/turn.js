// One run as it is seen: reasoning and tool calls folded, the answer, cards, how it ended, feedback.
// It takes AG-UI events, live or again; the same event twice changes nothing.
import { advice, ask, told } from "./api.js";
import { card } from "./card.js";
import { copy, el, icon, THUMB } from "./dom.js";
import { Markdown } from "./markdown.js";

const TAGS = {
  1: ["accurate", "helpful", "well written"],
  "-1": ["wrong", "incomplete", "too long", "unsafe"],
};

const NAMES = new Map(); // of calls by their ids: an approved call is answered in a later run

export class Turn {
  /** `asks.say(text)` speaks for the user, `asks.retry()` asks the same again, `asks.decided(run)` goes on. `judged`: the user's feedback so far. */
  constructor(run, asks, judged) {
    this.run = run;
    this.judged = judged;
    this.asks = asks;
    this.parts = new Map();
    this.times = {};
    this.body = el("div", { class: "parts" });
    this.foot = el("footer", { class: "foot" });
    this.element = el("article", { class: "turn", "data-run": run }, this.body, this.foot);
    this.waiting("Waiting…");
  }

  waiting(words) {
    this.foot.replaceChildren(el("span", { class: "quiet pulse" }, words));
  }

  take(event) {
    const shown = event.metadata?.parley?.uiSchema;
    switch (event.type) {
      case "RUN_STARTED": this.times.begun ??= event.timestamp; break;
      case "STEP_STARTED": this.waiting(event.stepName === "execution" ? "Thinking…" : "Starting…"); break;
      case "TEXT_MESSAGE_START": this.text(event.messageId); break;
      case "TEXT_MESSAGE_CONTENT": this.times.first ??= event.timestamp; this.text(event.messageId).more(event.delta); break;
      case "TEXT_MESSAGE_END": if (shown) this.card(event.messageId, shown); break;
      case "REASONING_MESSAGE_START": this.reasoning(event.messageId).open(); break;
      case "REASONING_MESSAGE_CONTENT": this.reasoning(event.messageId).more(event.delta); break;
      case "REASONING_MESSAGE_END": this.reasoning(event.messageId).close(event.metadata?.parley?.latency_ms); break;
      case "TOOL_CALL_START": this.call(event.toolCallId, event.toolCallName); break;
      case "TOOL_CALL_ARGS": this.call(event.toolCallId).asked(event.delta); break;
      case "TOOL_CALL_RESULT":
        this.call(event.toolCallId).answered(event.content, event.metadata?.parley ?? {});
        if (shown) this.card(event.toolCallId, shown);
        break;
      case "RUN_FINISHED": this.finished(event); break;
      case "RUN_ERROR": this.failed(event); break;
    }
  }

  part(key, make) {
    if (!this.parts.has(key)) {
      const made = make();
      this.parts.set(key, made);
      this.body.append(made.element);
    }
    return this.parts.get(key);
  }

  text(id) { return this.part(`text ${id}`, () => new Said()); }
  reasoning(id) { return this.part(`reasoning ${id}`, () => new Reasoned()); }
  call(id, name) {
    if (name) NAMES.set(id, name);
    return this.part(`call ${id}`, () => new Called(NAMES.get(id) ?? "tool"));
  }

  card(id, schema) { this.part(`card ${id}`, () => ({ element: card(schema, this.asks.say) })); }

  finished(event) {
    const asked = event.outcome?.interrupts ?? [];
    if (event.outcome?.type === "cancelled") return this.stopped();
    if (asked.length) {
      this.waiting("Waiting for your approval.");
      for (const one of asked) {
        this.approval({ id: one.id, tool_name: one.metadata?.tool_name, arguments: one.metadata?.arguments, expires_at: one.expiresAt, status: "pending" });
      }
      return this.settled("interrupted");
    }
    const [usage] = event.usage ?? [];
    const facts = [usage?.model, usage && `${usage.inputTokens} → ${usage.outputTokens} tokens`];
    const { begun, first } = this.times;
    if (begun && first) facts.push(`first words ${seconds(first - begun)}`);
    if (begun) facts.push(`all ${seconds(event.timestamp - begun)}`);
    this.ended(facts.filter(Boolean).join(" · "));
  }

  stopped() {
    this.ended("Stopped.");
  }

  failed({ code, message, metadata }) {
    if (code === "cancelled") return this.stopped();
    const again = el("button", { type: "button", onclick: () => this.asks.retry() }, "Try again");
    const words = [message, advice(code)].filter(Boolean).join(" ");
    this.part("error", () => ({ element: el("p", { class: "refusal", role: "alert" }, words, " ", again, el("small", {}, ` ${code}`)) }));
    this.ended(metadata?.parley?.retryable ? "Failed; trying again may help." : "Failed.");
  }

  ended(facts) {
    this.settled("ended");
    const button = el("button", { type: "button", class: "link" }, "Copy");
    const words = () => [...this.parts.values()].filter((one) => one instanceof Said).map((one) => one.words).join("\n\n");
    button.addEventListener("click", () => copy(words(), button));
    this.feedback ??= new Feedback(this.run, this.judged);
    this.foot.replaceChildren(el("span", { class: "quiet" }, facts), words() ? button : "", this.feedback.element);
  }

  settled(state) {
    for (const one of this.parts.values()) {
      if (state === "ended") one.close?.();
      else one.wait?.();
    }
    this.element.dataset.state = state;
  }

  approval(asked) {
    this.part(`approval ${asked.id.replaceAll("-", "")}`, () => new Approval(asked, () => this.decided()));
  }

  /** Once nothing of the run waits any more it goes on in a run of its own. */
  decided() {
    const waits = [...this.parts.values()].some((one) => one instanceof Approval && one.pending);
    if (waits) return;
    this.ended("Answered; it goes on below.");
    this.asks.decided(`continue-${this.run}`);
  }
}

const seconds = (ms) => (ms < 1000 ? `${Math.max(0, Math.round(ms))} ms` : `${(ms / 1000).toFixed(1)} s`);

class Said {
  constructor() {
    this.words = "";
    this.element = el("div", { class: "said" });
    this.markdown = new Markdown(this.element);
    this.drawing = false;
  }

  more(words) {
    this.words += words;
    if (this.drawing) return;
    this.drawing = true;
    if (document.hidden) setTimeout(() => this.draw(), 200);
    else requestAnimationFrame(() => this.draw());
  }

  draw() {
    if (!this.drawing) return;
    this.drawing = false;
    this.markdown.show(this.words);
  }

  /** Nothing more is said: what is still to be drawn is drawn before the run shows how it ended. */
  close() { this.draw(); }
}

class Reasoned {
  constructor() {
    this.words = el("p", { class: "plain" });
    this.head = el("summary", {}, "Reasoning…");
    this.element = el("details", { class: "reasoning" }, this.head, this.words);
  }

  open() { this.head.textContent = "Reasoning…"; }
  more(words) { this.words.append(words); }
  close(ms) {
    if (ms !== undefined) this.head.textContent = `Reasoned for ${seconds(ms)}`;
    else if (this.head.textContent.endsWith("…")) this.head.textContent = "Reasoning";
  }
}

class Called {
  constructor(name) {
    this.mark = el("span", { class: "badge pending" }, "running");
    this.time = el("span", { class: "quiet" });
    this.args = el("pre", { tabindex: "0" });
    this.answer = el("div");
    this.element = el("details", { class: "call" },
      el("summary", {}, el("code", {}, name), " ", this.mark, " ", this.time),
      this.args, this.answer);
    this.done = false;
  }

  asked(json) { this.args.textContent = pretty(json); }

  answered(json, { ok, latency_ms: ms }) {
    this.done = true;
    const failed = ok === false || (ok === undefined && /^\{"error":/.test(json));
    this.mark.className = `badge ${failed ? "error" : "success"}`;
    this.mark.textContent = failed ? "failed" : "done";
    if (ms !== undefined) this.time.textContent = seconds(ms);
    this.answer.replaceChildren(el("h5", {}, failed ? "Why" : "Result"), el("pre", { tabindex: "0" }, pretty(json)));
  }

  wait() {
    if (!this.done) this.mark.textContent = "waits for you";
  }

  close() {
    if (this.done) return;
    this.mark.className = "badge";
    this.mark.textContent = "not answered here";
  }
}

function pretty(json) {
  try {
    return JSON.stringify(JSON.parse(json), null, 2).slice(0, 20_000);
  } catch {
    return json.slice(0, 20_000);
  }
}

class Approval {
  constructor(asked, decided) {
    this.asked = asked;
    this.decided = decided;
    this.pending = asked.status === "pending";
    this.element = el("section", { class: "approval", "aria-label": `Approve ${asked.tool_name}` });
    if (this.pending) this.question();
    else this.outcome(asked);
  }

  question() {
    const { tool_name: name, arguments: given, expires_at: until } = this.asked;
    const whole = JSON.stringify(given ?? {}, null, 2);
    this.edit = el("textarea", { rows: Math.min(12, whole.split("\n").length), spellcheck: "false", "aria-label": "Arguments (JSON)" });
    this.edit.value = whole;
    this.reason = el("input", { placeholder: "Why not? (the model is told)", maxlength: "2000", "aria-label": "Reason" });
    this.wrong = el("p", { class: "refusal", role: "alert", hidden: true });
    this.element.replaceChildren(
      el("h4", {}, "May ", el("code", {}, name), " be called?"),
      el("p", { class: "quiet" }, `With these arguments; you may change them. Until ${new Date(until).toLocaleString()}.`),
      this.edit, this.wrong,
      el("div", { class: "stack row wrap" },
        el("button", { type: "button", class: "primary", onclick: () => this.approve(whole) }, "Approve"),
        this.reason,
        el("button", { type: "button", class: "danger", onclick: () => this.answer({ approve: false, reason: this.reason.value }) }, "Refuse")));
  }

  approve(whole) {
    if (this.edit.value === whole) return this.answer({ approve: true });
    try {
      return this.answer({ approve: true, arguments: JSON.parse(this.edit.value) });
    } catch {
      return this.refused("The arguments are not valid JSON: check commas, quotes and brackets.");
    }
  }

  async answer(decision) {
    this.lock(true);
    try {
      this.outcome(await ask(`/api/v1/agent/approvals/${this.asked.id}`, { method: "POST", json: decision }));
      this.decided();
    } catch (error) {
      this.lock(false);
      this.refused(told(error));
    }
  }

  lock(on) {
    for (const one of this.element.querySelectorAll("button, textarea, input")) one.disabled = on;
  }

  refused(words) {
    this.wrong.textContent = words;
    this.wrong.hidden = false;
  }

  outcome({ status, tool_name: name, reason, arguments: given, edited_arguments: edited }) {
    this.pending = false;
    const how = { approved: "success", refused: "error" }[status] ?? "warning";
    this.element.replaceChildren(
      el("p", {}, el("code", {}, name), " ", el("span", { class: `badge ${how}` }, status), reason ? ` “${reason}”` : ""),
      el("pre", { tabindex: "0" }, JSON.stringify(edited ?? given ?? {}, null, 2)));
  }
}

class Feedback {
  constructor(run, given) {
    this.path = `/api/v1/agent/runs/${run}/feedback`;
    this.thumbs = new Map([[1, this.thumb(1, "Good answer")], [-1, this.thumb(-1, "Bad answer")]]);
    this.more = el("form", { class: "more", hidden: true, onsubmit: (event) => { event.preventDefault(); this.send(); } });
    this.said = el("span", { class: "quiet", role: "status" });
    this.element = el("div", { class: "feedback" }, [...this.thumbs.values()], this.said, this.more);
    this.show(given ?? null);
  }

  thumb(score, label) {
    const made = el("button", { type: "button", class: `thumb ${score < 0 ? "down" : "up"}`, title: label, "aria-label": label, "aria-pressed": "false" }, icon(THUMB));
    made.addEventListener("click", () => this.press(score));
    return made;
  }

  show(given) {
    this.given = given;
    for (const [score, thumb] of this.thumbs) thumb.setAttribute("aria-pressed", String(given?.score === score));
  }

  async press(score) {
    if (this.given?.score === score) {
      await this.asked("DELETE");
      return;
    }
    this.comment = el("input", { placeholder: "What should we know? (optional)", maxlength: "4000", "aria-label": "Comment" });
    this.tags = TAGS[score].map((tag) => el("label", { class: "tag" }, el("input", { type: "checkbox", value: tag }), tag));
    await this.asked("POST", { score });
    if (this.given) {
      this.more.replaceChildren(...this.tags, this.comment, el("button", {}, "Add"));
      this.more.hidden = false;
    }
  }

  send() {
    const tags = this.tags.map((one) => one.querySelector("input")).filter((box) => box.checked).map((box) => box.value);
    return this.asked("POST", { score: this.given.score, comment: this.comment.value, tags });
  }

  async asked(method, json) {
    this.more.hidden = true;
    try {
      this.show(await ask(this.path, { method, json }));
      this.said.textContent = method === "DELETE" ? "Taken back." : json.tags ? "Noted, thank you." : "Thank you.";
    } catch (error) {
      this.said.textContent = told(error);
    }
  }
}
