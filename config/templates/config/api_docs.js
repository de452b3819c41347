{# The script of /api/docs/: Swagger UI as drf-spectacular sets it up, with a resolver of references. #}
"use strict";

// Swagger UI's own resolver goes through the whole document at every step: opening one operation took
// nine seconds. Ours follows only what it is asked for. All references stay inside the document.
const localReferences = {
  fn: { resolveSubtree: async (document, path) => ({ spec: resolveReferences(document, path), errors: [] }) },
};

function resolveReferences(document, path) {
  const find = (keys) => keys.reduce((found, key) => found?.[key], document);
  const named = (pointer) => find(pointer.slice(2).split("/").map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~")));
  const resolve = (value, within) => {
    if (Array.isArray(value)) return value.map((item) => resolve(item, within));
    if (value === null || typeof value !== "object") return value;
    const { $ref: pointer, ...own } = value;
    if (typeof pointer !== "string") return members(value, within);
    if (within.includes(pointer)) return value; // a schema that contains itself is shown as its name
    return { ...resolve(named(pointer), [...within, pointer]), ...members(own, within) };
  };
  const members = (value, within) =>
    Object.fromEntries(Object.entries(value).map(([key, member]) => [key, resolve(member, within)]));
  return resolve(find(path), []);
}

{% include "drf_spectacular/swagger_ui.js" %}
