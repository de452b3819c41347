// assistant-ui's core for AG-UI, without the React that stands around it, over the HttpAgent it brings.

import { HttpAgent } from "@ag-ui/client";
import { readFileSync } from "node:fs";
import { WEATHER, serve } from "./serving.mjs";

const packaged = new URL("../node_modules/@assistant-ui/react-ag-ui/", import.meta.url);
const { AgUiThreadRuntimeCore } = await import(new URL("dist/runtime/AgUiThreadRuntimeCore.js", packaged));

const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const tools = { get_weather: { type: "frontend", ...WEATHER, execute: () => {} } };

function begin({ url, token, model, threadId, system }) {
  const agent = new HttpAgent({
    url: `${url}/api/v1/agent/ag-ui`, threadId, headers: { Authorization: `Bearer ${token}` },
  });
  const errors = [];
  const core = new AgUiThreadRuntimeCore({
    agent, logger: quiet, showThinking: true, notifyUpdate() {}, onError: (error) => errors.push(error.message),
  });
  const context = { system, tools: {}, config: { model }, callSettings: {} };
  core.attachRuntime({ thread: { getModelContext: () => context } });
  return { core, context, errors };
}

const message = (text, more = {}) => ({
  role: "user", content: [{ type: "text", text }], attachments: [], metadata: { custom: {} },
  createdAt: new Date(), parentId: null, sourceId: null, runConfig: {}, startRun: true, ...more,
});
const text = (said) => said.content.filter((part) => part.type === "text").map((part) => part.text).join("");
const shown = (core) => core.getMessages().map((said) => `${said.role}: ${text(said)}`);
const last = (core) => core.getMessages().at(-1);

async function two_turns(given) {
  const { core, errors } = begin(given);
  await core.append(message("I am Ada."));
  await core.append(message("Who am I?", { parentId: last(core).id }));
  return { shown: shown(core), errors };
}

// The Reload button below the last answer.
async function reload(given) {
  const { core, errors } = begin(given);
  await core.append(message("Pick a number."));
  await core.reload(core.getMessages()[0].id);
  await core.append(message("Why?", { parentId: last(core).id }));
  return { shown: shown(core), errors };
}

// The pencil at the first question, after two turns.
async function edit(given) {
  const { core, errors } = begin(given);
  await core.append(message("I am Ada."));
  await core.append(message("Who am I?", { parentId: last(core).id }));
  await core.edit(message("I am Bob.", { sourceId: core.getMessages()[0].id }));
  await core.append(message("Who am I now?", { parentId: last(core).id }));
  return { shown: shown(core), errors };
}

async function frontend_tool(given) {
  const { core, context, errors } = begin(given);
  context.tools = tools;
  await core.append(message("Is it warm in Ulm?"));
  const asked = last(core);
  const call = asked.content.find((part) => part.type === "tool-call");
  core.addToolResult({ messageId: asked.id, toolCallId: call.toolCallId, toolName: call.toolName, result: "21 °C" });
  await core.append(message("So?", { parentId: asked.id }));
  return { called: call.toolName, shown: shown(core).slice(-1), errors };
}

async function version() {
  return JSON.parse(readFileSync(new URL("package.json", packaged))).version;
}

await serve({ two_turns, reload, edit, frontend_tool, version });
