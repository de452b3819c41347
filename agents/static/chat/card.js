// uiSchema 2.0 (docs/api-contracts/schemas/ui_schema_renderer_2_0.schema.json) as elements.
// An image from elsewhere is a link: a picture that loads by itself would tell its host who reads.
import { copy, el, link } from "./dom.js";
import { Markdown } from "./markdown.js";

const STATUS = new Set(["info", "success", "warning", "error", "pending"]);

/** The card; `say` is called with a text where a button sends a message in the user's name. */
export function card(schema, say) {
  const made = el("section", { class: `card ${mood(schema.status)}`, lang: schema.locale });
  made.append(node(schema.root, say));
  return made;
}

const mood = (status) => (STATUS.has(status) ? status : "info");

function node(given, say) {
  const draw = DRAWN[given.type];
  return draw ? draw(given, say) : el("p", { class: "quiet" }, `[${given.type}]`);
}

const DRAWN = {
  stack: ({ direction, appearance, wrap, children }, say) =>
    el("div", { class: `stack ${direction === "horizontal" ? "row" : ""} ${wrap ? "wrap" : ""} ${appearance === "inset" ? "inset" : ""}` },
      children.map((child) => node(child, say))),
  grid: ({ columns = 2, children }, say) =>
    el("div", { class: `grid of${columns}` }, children.map((child) => node(child, say))),
  text: ({ content, role = "body", format }) => {
    if (format === "markdown") {
      const place = el("div", { class: "said" });
      new Markdown(place).show(content);
      return place;
    }
    if (role === "code") return el("pre", {}, content);
    return el(role === "title" ? "h4" : "p", { class: `text ${role}` }, content);
  },
  badge: ({ label, status }) => el("span", { class: `badge ${mood(status)}` }, label),
  icon: ({ name, label }) => el("span", { class: "badge", title: name }, label || name),
  image: ({ url, alt }) => el("p", { class: "picture" }, "🖼 ", link(alt || url, url)),
  divider: () => el("hr"),
  key_value: ({ items }) => el("dl", {}, items.flatMap((item) => [
    el("dt", {}, item.label),
    el("dd", {}, item.value, item.copyable ? copying(item.value) : null),
  ])),
  list: ({ ordered, items }, say) => el(ordered ? "ol" : "ul", {}, items.map((item) => el("li", {},
    el("strong", {}, item.action ? action(item.title, item.action, say) : item.title), " ",
    item.badge ? node({ type: "badge", ...item.badge }, say) : null,
    item.description ? el("div", { class: "quiet" }, item.description) : null))),
  table: ({ columns, rows }) => el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, columns.map((name) => el("th", {}, name)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell) => el("td", {}, cell))))))),
  progress: ({ value, label }) => el("label", { class: "progress" }, label || "", " ", el("progress", { value, max: 1 })),
  button: ({ label, style, disabled, action: asked }, say) => {
    const made = action(label, asked, say, style === "link" ? "link" : style);
    if (disabled) made.setAttribute("disabled", "");
    return made;
  },
};

function copying(text) {
  const button = el("button", { type: "button", class: "link" }, "Copy");
  button.addEventListener("click", () => copy(text, button));
  return button;
}

/** What a person may do: a link, or a button. */
function action(label, asked, say, style = "link") {
  if (asked.type === "open_url") return link(label, asked.url);
  if (asked.type === "navigate") return el("span", { class: "badge", title: "A place inside the app that this card was made for" }, `${label} (${asked.path})`);
  const button = el("button", { type: "button", class: style }, label);
  if (asked.type === "copy") button.addEventListener("click", () => copy(asked.text, button));
  else button.addEventListener("click", () => say(asked.text));
  return button;
}
