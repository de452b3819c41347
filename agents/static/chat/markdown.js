// The Markdown that models write, as elements: headings, lists, tables, quotes, code, links, emphasis.
// What is not understood is shown as it is. A growing text costs only its last block again.
import { copy, el, link } from "./dom.js";

const LONGEST = 20_000;
const FENCE = /^\s{0,3}(```|~~~)\s*([\w+#.-]*)/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const RULE = /^\s{0,3}([-*_])(\s*\1){2,}\s*$/;
const CELLS = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
const INLINE = /(`+)(.+?)\1|!?\[([^\]\n]*)\]\(([^()\s]+(?:\([^()\s]*\)[^()\s]*)*)\)|\*\*(.+?)\*\*|__(.+?)__|\*([^*\s](?:[^*]*[^*\s])?)\*|(?<![\w])_([^_\s](?:[^_]*[^_\s])?)_(?![\w])|~~(.+?)~~|(https:\/\/[^\s<>"'`]*[^\s<>"'`.,;:!?)\]])/s;

/** Shows a text in `place`; called again with a longer one it redraws only what has changed. */
export class Markdown {
  constructor(place) {
    this.place = place;
    this.shown = [];
  }

  show(text) {
    const blocks = split(text);
    let same = 0;
    while (same < this.shown.length && same < blocks.length && this.shown[same].text === blocks[same]) same++;
    for (const { node } of this.shown.splice(same)) node.remove();
    for (const block of blocks.slice(same)) {
      const node = draw(block);
      this.shown.push({ text: block, node });
      this.place.append(node);
    }
  }
}

/** The text in blocks: at blank lines, but not within code. */
function split(text) {
  const blocks = [];
  let lines = [], fence = "";
  const close = () => { if (lines.length) blocks.push(lines.join("\n")); lines = []; };
  for (const line of text.replaceAll("\r\n", "\n").split("\n")) {
    const mark = FENCE.exec(line);
    if (fence) {
      lines.push(line);
      if (mark && mark[1] === fence && !mark[2]) { fence = ""; close(); }
    } else if (mark) {
      close();
      fence = mark[1];
      lines.push(line);
    } else if (!line.trim()) {
      close();
    } else {
      if (/^#{1,6}\s/.test(line)) { close(); blocks.push(line); } else lines.push(line);
    }
  }
  close();
  return blocks;
}

function draw(block) {
  if (block.length > LONGEST) return el("p", { class: "plain" }, block);
  const lines = block.split("\n");
  const fence = FENCE.exec(lines[0]);
  if (fence) return code(lines, fence[1]);
  const heading = /^(#{1,6})\s+(.*?)\s*#*$/.exec(lines[0]);
  if (heading) return el(`h${Math.min(6, heading[1].length + 2)}`, {}, inline(heading[2]));
  if (lines.length === 1 && RULE.test(lines[0])) return el("hr");
  if (ITEM.test(lines[0])) return list(lines);
  if (lines.every((line) => /^\s{0,3}>/.test(line))) {
    const quoted = el("blockquote");
    new Markdown(quoted).show(lines.map((line) => line.replace(/^\s{0,3}>\s?/, "")).join("\n"));
    return quoted;
  }
  if (lines.length > 1 && lines[0].includes("|") && CELLS.test(lines[1])) return table(lines);
  const first = lines.findIndex((line, place) => place && ITEM.test(line));
  if (first > 0) {
    return el("div", {}, draw(lines.slice(0, first).join("\n")), list(lines.slice(first)));
  }
  return el("p", {}, broken(lines.join("\n")));
}

function code(lines, mark) {
  const closed = lines.length > 1 && lines.at(-1).trim() === mark;
  const text = lines.slice(1, closed ? -1 : undefined).join("\n");
  const button = el("button", { type: "button", class: "copy" }, "Copy");
  button.addEventListener("click", () => copy(text, button));
  return el("div", { class: "code" }, button, el("pre", { tabindex: "0" }, el("code", {}, text)));
}

/** A list, with lists within it by their indentation. */
function list(lines) {
  const top = { indent: -1, node: el("div") };
  const open = [top];
  for (const line of lines) {
    const found = ITEM.exec(line);
    if (!found) {
      const last = open.at(-1).node.lastElementChild ?? open.at(-1).node;
      last.append(el("br"), ...inline(line.trim()));
      continue;
    }
    const indent = found[1].replaceAll("\t", "    ").length;
    while (open.length > 1 && indent < open.at(-1).indent) open.pop();
    if (indent > open.at(-1).indent) {
      const ordered = /\d/.test(found[2]);
      const start = ordered && parseInt(found[2], 10) !== 1 ? parseInt(found[2], 10) : null;
      const made = el(ordered ? "ol" : "ul", { start });
      (open.at(-1) === top ? top.node : open.at(-1).node.lastElementChild).append(made);
      open.push({ indent, node: made });
    }
    open.at(-1).node.append(el("li", {}, inline(found[3])));
  }
  return top.node;
}

function table(lines) {
  const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());
  const row = (line, kind) => el("tr", {}, cells(line).map((cell) => el(kind, {}, inline(cell))));
  const rows = lines.slice(2).map((line) => row(line, "td"));
  return el("div", { class: "scroll" }, el("table", {}, el("thead", {}, row(lines[0], "th")), el("tbody", {}, rows)));
}

function broken(text) {
  return text.split("\n").flatMap((line, place) => (place ? [el("br"), ...inline(line)] : inline(line)));
}

function inline(text) {
  const nodes = [];
  let rest = text;
  for (let found = INLINE.exec(rest); found; found = INLINE.exec(rest)) {
    if (found.index) nodes.push(document.createTextNode(rest.slice(0, found.index)));
    nodes.push(marked(found));
    rest = rest.slice(found.index + found[0].length);
  }
  if (rest) nodes.push(document.createTextNode(rest));
  return nodes;
}

function marked([whole, , codeText, label, address, strong, strong2, soft, soft2, gone, bare]) {
  if (codeText !== undefined) return el("code", {}, codeText.trim());
  if (address !== undefined) return link(`${whole.startsWith("!") ? "🖼 " : ""}${label || address}`, address);
  if (strong ?? strong2) return el("strong", {}, inline(strong ?? strong2));
  if (soft ?? soft2) return el("em", {}, inline(soft ?? soft2));
  if (gone) return el("del", {}, inline(gone));
  return link(bare ?? whole, bare ?? whole);
}
