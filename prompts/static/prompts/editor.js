// The preview beside the prompt editor: asks the server a moment after the last key, shows its answer.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const panel = document.getElementById("prompt-preview");
  const content = document.querySelector("textarea[name=content]");
  if (!panel || !content) return;
  const form = content.form;
  const part = (name) => panel.querySelector(`[data-part=${name}]`);
  let timer = 0;
  let asking = null;

  async function ask() {
    if (asking) asking.abort();
    asking = new AbortController();
    const kind = form.elements.kind ? form.elements.kind.value : panel.dataset.kind;
    const body = new URLSearchParams({
      content: content.value,
      kind: kind || panel.dataset.kind,
      tools: part("tools").value,
      context: part("context").value,
      csrfmiddlewaretoken: form.elements.csrfmiddlewaretoken.value,
    });
    try {
      const answer = await fetch(panel.dataset.url, { method: "POST", body, signal: asking.signal });
      if (!answer.ok) throw new Error(String(answer.status));
      show(await answer.json());
    } catch (error) {
      if (error.name !== "AbortError") part("problem").textContent = "The preview cannot be had just now.";
    }
  }

  function show(said) {
    part("counts").textContent =
      `This wording: about ${said.tokens} tokens, ${said.characters} characters. ` +
      `The whole message: about ${said.whole_tokens} tokens.`;
    part("note").textContent = said.in_a_run
      ? ""
      : "Runs use prompts of the kinds agent_system and agent_tools; this one is shown alone.";
    part("unknown").textContent = said.unknown.length
      ? `Unknown names, which stay unchanged: ${said.unknown.join(", ")}.`
      : "";
    part("problem").textContent = said.problem;
    part("message").textContent = said.message;
    const rows = said.variables.map((variable) => {
      const row = document.createElement("tr");
      for (const text of [variable.name, variable.source, variable.default || "nothing"]) {
        row.appendChild(document.createElement("td")).textContent = text;
      }
      return row;
    });
    part("variables").replaceChildren(...rows);
    part("variables").parentElement.hidden = rows.length === 0;
  }

  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(ask, 250);
  };
  for (const box of [content, part("tools"), part("context")]) box.addEventListener("input", soon);
  if (form.elements.kind) form.elements.kind.addEventListener("change", soon);
});
