// The page: which conversations there are, what is written and attached, and the columns beside each other.
// The address holds what is open (#thread or #thread.thread), so a reload finds everything again.
import { ask, enter, forget, isKnown, told, upload } from "./api.js";
import { Column } from "./column.js";
import { el, uuid } from "./dom.js";

const DRAFT = "parley-draft";
const MOST_COLUMNS = 3;
const MOST_IMAGES = 8;
const LARGEST = 10 * 1024 * 1024;
const find = (id) => document.getElementById(id);
const ui = Object.fromEntries(["side", "theme", "new", "earlier", "threads", "more", "forget", "columns", "composer", "files", "text",
  "attach", "picker", "compare", "stop", "send", "gate", "why", "login", "enter", "token"].map((id) => [id, find(id)]));

class Room {
  constructor() {
    this.models = [];
    this.columns = [];
    this.images = new Map();
    this.cursor = null;
    this.listings = 0;
  }

  async begin() {
    if (!isKnown()) return this.gate(null);
    try {
      this.models = (await ask("/api/v1/llm/models")).data;
    } catch (error) {
      if (error.status === 401) return this.gate(error);
      return ui.columns.replaceChildren(el("p", { class: "refusal", role: "alert" }, told(error)));
    }
    if (!this.models.length) return ui.columns.replaceChildren(el("p", { class: "refusal", role: "alert" }, "No model can be asked yet. Staff must add an endpoint and a model mapping in admin."));
    this.arrange();
    this.list();
    ui.text.value = sessionStorage.getItem(DRAFT) ?? "";
    this.grow();
    ui.text.focus();
  }

  gate(error) {
    if (error) {
      forget();
      ui.why.textContent = error.message;
      ui.why.hidden = false;
    }
    const here = location.pathname + location.search + location.hash;
    ui.login.href = `/chat/login/?next=${encodeURIComponent(here)}`;
    ui.gate.hidden = false;
    ui.token.focus();
  }

  // --- columns ---

  arrange() {
    const threads = location.hash.slice(1).split(".").filter((part) => /^[0-9a-f-]{32,36}$/.test(part)).slice(0, MOST_COLUMNS);
    if (this.columns.length && threads.join() === this.open().join()) return;
    for (const column of this.columns) column.leave();
    this.columns = [];
    ui.columns.replaceChildren();
    for (const thread of threads.length ? threads : [null]) {
      const column = this.column();
      if (thread) column.open(thread);
    }
    this.changed();
  }

  column() {
    const taken = new Set(this.columns.map((one) => one.model.value));
    const named = (name) => this.models.find((one) => one.name === name);
    const usual = named(sessionStorage.getItem("parley-model")) ?? named(document.body.dataset.defaultModel);
    const first = this.columns.length ? this.models.find((one) => !taken.has(one.name)) : usual;
    const column = new Column(this, this.models, { model: first?.name, closable: this.columns.length > 0 });
    column.model.addEventListener("change", () => { if (column === this.columns[0]) sessionStorage.setItem("parley-model", column.model.value); });
    this.columns.push(column);
    ui.columns.append(column.element);
    return column;
  }

  close(column) {
    column.leave();
    column.element.remove();
    this.columns = this.columns.filter((one) => one !== column);
    this.changed();
  }

  get busy() { return this.columns.some((column) => column.live); }

  open() { return this.columns.map((column) => column.thread).filter(Boolean); }

  /** After anything that changes who is speaking or what is open. */
  changed() {
    ui.stop.hidden = !this.busy;
    ui.send.hidden = this.busy;
    ui.compare.hidden = this.columns.length >= MOST_COLUMNS;
    ui.columns.dataset.count = this.columns.length;
    const open = this.open().join(".");
    if (open && location.hash.slice(1) !== open) history.pushState(null, "", `#${open}`);
    for (const one of ui.threads.querySelectorAll("[data-thread]")) one.setAttribute("aria-current", String(this.open().includes(one.dataset.thread)));
  }

  fresh() {
    history.pushState(null, "", location.pathname + location.search);
    const models = this.columns.map((column) => column.model.value);
    for (const column of this.columns) column.leave();
    this.columns = [];
    this.arrange();
    for (const [place, model] of models.entries()) (this.columns[place] ?? this.column()).model.value = model;
    this.changed();
    ui.text.focus();
  }

  // --- conversations ---

  async list(more = false) {
    const asked = ++this.listings;
    const page = await ask(`/api/v1/agent/threads?limit=30${more && this.cursor ? `&cursor=${encodeURIComponent(this.cursor)}` : ""}`).catch(() => null);
    if (!page) return [];
    if (asked < this.listings) return page.threads; // a later answer is newer
    this.cursor = page.nextCursor;
    const items = page.threads.map((thread) => this.item(thread));
    if (more) ui.threads.append(...items);
    else ui.threads.replaceChildren(...items);
    ui.more.hidden = !this.cursor;
    this.changed();
    return page.threads;
  }

  item(thread) {
    const name = thread.title || "Untitled";
    const open = el("a", { href: `#${thread.id}`, "data-thread": thread.id, title: name }, name,
      thread.liveRunId ? el("span", { class: "pulse", title: "Answering" }, " ●") : null);
    const gone = el("button", { type: "button", class: "link", title: `Delete “${name}”`, "aria-label": `Delete ${name}`, onclick: () => this.remove(thread, name) }, "✕");
    return el("div", { class: "thread" }, open, gone);
  }

  async remove(thread, name) {
    if (!confirm(`Delete “${name}” with everything in it?`)) return;
    await ask(`/api/v1/agent/threads/${thread.id}`, { method: "DELETE" }).catch((error) => this.columns[0].problem(error));
    if (this.open().includes(thread.id)) this.fresh();
    this.list();
  }

  // --- saying ---

  say(text) {
    if (this.busy) return;
    const images = [...this.images.values()].filter((image) => image.stored).map((image) => image.stored);
    if (!text && !images.length) return;
    for (const column of this.columns) column.thread ??= uuid();
    for (const column of this.columns) column.send(text, images);
    this.dropAll();
  }

  send() {
    if (this.busy || !this.columns.length) return; // what is written stays
    const text = ui.text.value.trim();
    if ([...this.images.values()].some((image) => !image.stored && !image.failed)) {
      ui.files.classList.add("hurry");
      return;
    }
    ui.text.value = "";
    this.grow();
    this.say(text);
  }

  stop() { for (const column of this.columns) column.stop(); }

  grow() {
    sessionStorage.setItem(DRAFT, ui.text.value); // so that signing in again loses nothing
    ui.text.rows = Math.min(10, Math.max(1, ui.text.value.split("\n").length));
  }

  // --- images ---

  attach(files) {
    for (const file of files) if (file.type.startsWith("image/") && this.images.size < MOST_IMAGES) this.attachOne(file);
  }

  async attachOne(file) {
    const key = Symbol(file.name), cut = new AbortController();
    const bar = el("progress", { max: 1, value: 0, "aria-label": `Uploading ${file.name}` });
    const seen = URL.createObjectURL(file);
    const gone = el("button", { type: "button", class: "link", "aria-label": `Remove ${file.name}`, onclick: () => this.drop(key) }, "✕");
    const image = { cut, seen, stored: null, failed: false };
    image.element = el("figure", {}, el("img", { src: seen, alt: file.name }), el("figcaption", {}, file.name), bar, gone);
    this.images.set(key, image);
    ui.files.append(image.element);
    ui.files.hidden = false;
    try {
      if (file.size > LARGEST) throw Object.assign(new Error("This image has more than 10 MiB."), { code: "payload_too_large" });
      image.stored = await upload(file, (part) => { bar.value = part; }, cut.signal);
      bar.replaceWith(el("span", { class: "badge success" }, "ready"));
      ui.files.classList.remove("hurry");
    } catch (error) {
      if (cut.signal.aborted) return;
      image.failed = true;
      bar.replaceWith(el("span", { class: "refusal", role: "alert" }, told(error)));
    }
  }

  drop(key) {
    const image = this.images.get(key);
    image.cut.abort();
    image.element.remove();
    URL.revokeObjectURL(image.seen);
    this.images.delete(key);
    ui.files.hidden = this.images.size === 0;
  }

  dropAll() { for (const key of [...this.images.keys()]) this.drop(key); }
}

const room = new Room();

ui.composer.addEventListener("submit", (event) => { event.preventDefault(); room.send(); });
ui.text.addEventListener("input", () => room.grow());
ui.text.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); room.send(); }
});
ui.stop.addEventListener("click", () => room.stop());
ui.new.addEventListener("click", () => { showEarlier(false); room.fresh(); });
/** The list of conversations, where there is no room to show it all the time. */
function showEarlier(on) {
  ui.side.toggleAttribute("data-open", on);
  ui.earlier.setAttribute("aria-expanded", String(on));
}
ui.earlier.addEventListener("click", () => showEarlier(!ui.side.hasAttribute("data-open")));
ui.threads.addEventListener("click", (event) => { if (event.target.closest("a")) showEarlier(false); });
ui.more.addEventListener("click", () => room.list(true));
ui.compare.addEventListener("click", () => { room.column(); room.changed(); ui.text.focus(); });
ui.attach.addEventListener("click", () => ui.picker.click());
ui.picker.addEventListener("change", () => { room.attach(ui.picker.files); ui.picker.value = ""; });
ui.text.addEventListener("paste", (event) => room.attach(event.clipboardData.files));
ui.composer.addEventListener("dragover", (event) => event.preventDefault());
ui.composer.addEventListener("drop", (event) => { event.preventDefault(); room.attach(event.dataTransfer.files); });
ui.forget?.addEventListener("click", () => { forget(); location.assign("/chat/"); });
ui.enter.addEventListener("submit", (event) => { event.preventDefault(); enter(ui.token.value.trim()); location.reload(); });
ui.theme.addEventListener("click", () => {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("parley-theme", document.documentElement.dataset.theme);
});
addEventListener("keydown", (event) => {
  if (event.key === "Escape") room.stop();
  if (event.altKey && event.code === "KeyN") { event.preventDefault(); room.fresh(); }
  if (event.key === "/" && !/^(TEXTAREA|INPUT|SELECT)$/.test(event.target.tagName)) { event.preventDefault(); ui.text.focus(); }
});
addEventListener("popstate", () => room.arrange());
addEventListener("hashchange", () => room.arrange());

room.begin();
