// One conversation with one model: what was said, what is being said, and saying more.
import { ask, follow, own, promptVersion, Refused, told } from "./api.js";
import { el, uuid } from "./dom.js";
import { Turn } from "./turn.js";

const EXAMPLES = [
  ["Search the exercise library", "Which exercises train my chest?"],
  ["The same in Chinese", "练背有什么动作？"],
  ["See the model think, and a card", "demo.think demo.card: leg day without machines"],
  ["Approve a tool call", "approve demo.note buy milk"],
];

export class Column {
  /** `room` has `changed()` (whose turn it is), `list()` (read the conversations anew), `say(text)`. */
  constructor(room, models, { model, closable }) {
    this.room = room;
    this.models = models;
    this.thread = null;
    this.turns = new Map();
    this.judged = new Map();
    this.live = null;
    this.cut = new AbortController();
    this.model = el("select", { "aria-label": "Model" }, models.map((one) => el("option", { value: one.name }, one.label)));
    this.model.disabled = models.length === 0;
    this.model.addEventListener("change", () => this.log.querySelector(".empty") && this.empty());
    if (model) this.model.value = model;
    this.state = el("span", { class: "quiet", role: "status" });
    const close = el("button", { type: "button", class: "link", title: "Close this column", "aria-label": "Close this column", onclick: () => room.close(this) }, "✕");
    this.log = el("div", { class: "log", role: "log", tabindex: "0", "aria-label": "Conversation" });
    this.element = el("section", { class: "column" }, el("header", {}, this.model, this.state, closable ? close : null), this.log);
    this.empty();
  }

  /** Whether the chosen model is the offline one, whose endpoint has no dialect. */
  get offline() { return this.models.find((one) => one.name === this.model.value)?.dialect === null; }

  empty() {
    const examples = (this.offline ? EXAMPLES : EXAMPLES.slice(0, 1)).map(([title, text]) => el("button", { type: "button", class: "example", onclick: () => this.room.say(text) },
      el("strong", {}, title), el("span", { class: "quiet" }, text)));
    this.log.replaceChildren(el("div", { class: "empty" },
      el("h2", {}, "What would you like to know?"),
      this.offline ? el("p", { class: "quiet" }, "No key is needed: the offline model searches the exercise library, thinks aloud, shows cards, looks at images and waits for your approval.") : null,
      el("div", { class: "examples" }, examples)));
  }

  leave() {
    this.cut.abort();
    this.live = null;
  }

  add(...elements) {
    this.log.querySelector(".empty")?.remove();
    this.log.append(...elements);
  }

  /** Whether the newest is in sight; then it is kept so while it grows. */
  get atEnd() { return this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < 80; }
  toEnd() { this.log.scrollTop = this.log.scrollHeight; }

  turn(run) {
    if (!this.turns.has(run)) {
      const turn = new Turn(run, {
        say: (text) => this.room.say(text),
        retry: () => this.asked && !this.live && this.send(this.asked.text, this.asked.images),
        decided: (next) => this.watch(next),
      }, this.judged.get(run));
      this.turns.set(run, turn);
      this.add(turn.element);
    }
    return this.turns.get(run);
  }

  // --- what was said before ---

  async open(thread) {
    this.thread = thread;
    this.log.replaceChildren();
    this.turns.clear();
    try {
      const said = await ask(`/api/v1/agent/threads/${thread}?reasoning=true`);
      this.judged = new Map((said.feedback ?? []).map((given) => [given.run_id, given]));
      this.showMessages(said.messages);
      this.toEnd();
      await this.settleLast(said);
    } catch (error) {
      this.problem(error);
      if (error instanceof Refused && error.status === 404) this.thread = null;
    }
  }

  showMessages(messages) {
    const calls = new Map();
    let run = "";
    for (const message of messages) {
      const ours = message.metadata?.parley ?? {};
      run = ours.run_id ?? run;
      for (const call of message.toolCalls ?? []) calls.set(call.id, call.function);
      if (message.role === "user") {
        this.showUser(textOf(message.content), imagesOf(message.content), documentsOf(message.content));
        this.lastRun = run;
      } else if (message.role === "reasoning") {
        const thought = this.turn(run).reasoning(message.id);
        thought.more(message.content);
        thought.close(ours.latency_ms);
      } else if (message.role === "tool") this.showTool(this.turn(run), message, calls, ours);
      else if (message.role === "assistant" && message.content) {
        this.turn(run).text(message.id).more(message.content);
        if (ours.uiSchema) this.turn(run).card(message.id, ours.uiSchema);
      }
    }
    for (const turn of this.turns.values()) turn.ended("");
  }

  showTool(turn, message, calls, ours) {
    const asked = calls.get(message.toolCallId);
    const call = turn.call(message.toolCallId, asked?.name ?? ours.tool_name);
    if (asked) call.asked(asked.arguments);
    call.answered(textOf(message.content), { latency_ms: ours.latency_ms });
    if (ours.uiSchema) turn.card(message.toolCallId, ours.uiSchema);
  }

  showUser(text, images, documents = []) {
    this.add(el("article", { class: "asked" },
      documents.map(({ source, metadata }) => el("a", { href: own(source.value), target: "_blank", rel: "noopener" }, metadata?.filename || "Attached text")),
      images.map((url) => el("img", { src: own(url), alt: "Attached image", loading: "lazy" })),
      text ? el("p", { class: "plain" }, text) : null));
  }

  /** The last run may still be going on, wait for approval, or have failed; messages do not say so. */
  async settleLast(thread) {
    const last = thread.liveRunId ?? this.lastRun;
    if (!last) return;
    const run = await ask(`/api/v1/agent/runs/${last}`);
    if ([...this.model.options].some((one) => one.value === run.model)) this.model.value = run.model;
    if (thread.liveRunId) {
      await this.watch(thread.liveRunId);
      return;
    }
    if (run.error) {
      this.turn(run.run_id).failed({ code: run.error.code, message: run.error.message });
      this.toEnd();
    }
    for (const asked of run.interrupts ?? []) {
      this.turn(run.run_id).approval(asked);
      if (asked.status === "pending") this.turn(run.run_id).settled("interrupted");
      this.toEnd();
    }
  }

  // --- what is said now ---

  async send(text, images) {
    this.asked = { text, images };
    const blocks = [...(text ? [{ type: "text", text }] : []), ...images.map(({ mime_type, url }) => ({ type: "binary", mimeType: mime_type, url }))];
    const run = uuid();
    const json = {
      threadId: this.thread, runId: run, protocolVersion: "1.0",
      messages: [{ id: uuid(), role: "user", content: images.length ? blocks : text }],
      forwardedProps: { model: this.model.value },
    };
    this.showUser(text, images.map((image) => image.url));
    this.toEnd();
    this.setLive("starting");
    try {
      const headers = promptVersion ? { "X-Prompt-Version": promptVersion } : {};
      const post = () => ask("/api/v1/agent/runs", { method: "POST", json, headers });
      const accepted = await post().catch((error) => {
        if (error instanceof TypeError) return post(); // the same runId starts one run
        throw error;
      });
      this.room.list();
      await this.watch(accepted.taskId);
    } catch (error) {
      this.setLive(null);
      this.problem(error, () => this.send(text, images));
    }
  }

  /** Follow a run, from its first event, to its end. */
  async watch(run) {
    const cut = this.cut;
    this.setLive(run);
    let turn = null;
    const take = (event) => {
      const follows = this.atEnd;
      turn ??= this.turn(run);
      turn.take(event);
      if (follows) requestAnimationFrame(() => this.toEnd());
    };
    const state = (how) => { this.state.textContent = how === "cut" ? "Connection lost; trying again…" : ""; };
    try {
      if (run.startsWith("continue-")) run = (await ask(`/api/v1/agent/runs/${run}`)).run_id;
      this.setLive(run);
      await follow(run, take, { signal: cut.signal, state });
    } catch (error) {
      if (!cut.signal.aborted) this.problem(error);
    }
    if (cut.signal.aborted) return;
    this.setLive(null);
    await this.next(run);
  }

  /** What was enqueued behind the run that has just ended, perhaps from another window. */
  async next(run) {
    const thread = (await this.room.list()).find((one) => one.id === this.thread);
    if (thread?.liveRunId && thread.liveRunId !== run && !this.live) await this.watch(thread.liveRunId);
  }

  setLive(run) {
    this.live = run;
    this.element.setAttribute("aria-busy", String(run !== null));
    this.room.changed();
  }

  async stop() {
    if (!this.live || this.live === "starting") return;
    await ask(`/api/v1/agent/runs/${this.live}/cancel`, { method: "POST" }).catch((error) => this.problem(error));
  }

  problem(error, again) {
    if (error instanceof Refused && error.status === 401) this.room.gate(error);
    const button = again ? el("button", { type: "button", onclick: () => { box.remove(); again(); } }, "Try again") : null;
    const box = el("p", { class: "refusal", role: "alert" }, told(error), " ", button);
    this.add(box);
    this.toEnd();
  }
}

const textOf = (content) => (typeof content === "string" ? content : (content ?? []).filter((part) => part.type === "text").map((part) => part.text).join("\n"));
const imagesOf = (content) => (typeof content === "string" ? [] : (content ?? []).filter((part) => part.type === "image").map((part) => part.source.value));
const documentsOf = (content) => (typeof content === "string" ? [] : (content ?? []).filter((part) => part.type === "document"));
