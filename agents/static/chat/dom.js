// Elements from text and children. Nothing here or elsewhere on the page parses HTML.

/** An element; `attributes` with on… are listeners, true is an empty attribute, false and null none. */
export function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

/** A line drawing of 24 × 24. */
export function icon(path) {
  const SVG = "http://www.w3.org/2000/svg";
  const made = document.createElementNS(SVG, "svg");
  made.setAttribute("viewBox", "0 0 24 24");
  made.setAttribute("aria-hidden", "true");
  const line = document.createElementNS(SVG, "path");
  line.setAttribute("d", path);
  made.append(line);
  return made;
}

export const THUMB = "M4 11h3v9H4z M10 20h7.4a2 2 0 0 0 2-1.6l1.2-5.9A2 2 0 0 0 18.6 10H14l.9-4.4A2 2 0 0 0 13 3.2L10 10z";

/** A link that leads where it says; the text alone if its address is not https, ours or within the page. */
export function link(text, address) {
  const safe = /^(https:\/\/[^\s\\]+|\/(?![/\\])[^\s\\]*|#[^\s]*)$/.test(address);
  if (!safe) return document.createTextNode(text);
  const out = address.startsWith("https:");
  return el("a", { href: address, rel: "noopener noreferrer nofollow", target: out && "_blank" }, text);
}

/** Put a text on the clipboard, and say so on the button for a moment. */
export async function copy(text, button) {
  const said = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed here";
  }
  setTimeout(() => { button.textContent = said; }, 1500);
}

/** A random UUID; `crypto.randomUUID` is missing where the page is not served over TLS. */
export function uuid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 15) | 64;
  bytes[8] = (bytes[8] & 63) | 128;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
