// Codex CLI, unmodified, without its screen: `codex exec`, and the same session resumed.

import { spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { serve } from "./serving.mjs";

const codex = fileURLToPath(new URL("../node_modules/.bin/codex", import.meta.url));

// The events of one `codex exec`.
function exec({ url, token, model, off, plain, once }, home, args) {
  const provider = `{name="Parley", base_url="${url}/v1", wire_api="responses", env_key="PARLEY_TOKEN"${once ? ", stream_max_retries=0" : ""}}`;
  const settings = {
    model_provider: '"parley"', "model_providers.parley": provider, model: `"${model}"`,
    check_for_update_on_startup: "false", "analytics.enabled": "false",
    ...(off ? { web_search: '"disabled"', "features.multi_agent": "false" } : {}),
  };
  const config = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const sandbox = plain ? [] : ["--sandbox", "danger-full-access"];
  const command = ["exec", "--json", "--skip-git-repo-check", ...sandbox, ...config, ...args];
  const env = { PATH: process.env.PATH, HOME: home, CODEX_HOME: home, PARLEY_TOKEN: token, NO_PROXY: "*" };
  return new Promise((done) => {
    const child = spawn(codex, command, { cwd: home, env, stdio: ["ignore", "pipe", "inherit"] });
    let said = "";
    child.stdout.on("data", (piece) => (said += piece));
    child.on("close", () => done(said.split("\n").filter(Boolean).map((line) => JSON.parse(line))));
  });
}

const spoken = (events) =>
  events.filter((event) => event.type === "item.completed" && event.item.type === "agent_message").map((e) => e.item.text);
const commands = (events) =>
  events
    .filter((event) => event.type === "item.completed" && event.item.type === "command_execution")
    .map(({ item }) => item.aggregated_output.trim());
const errors = (events) =>
  events
    .filter((e) => e.type === "turn.failed" || e.type === "error")
    .map((e) => (e.error?.message ?? e.message).replace(/, url: .*/, ""));

async function two_turns(given) {
  const home = mkdtempSync(join(tmpdir(), "codex-"));
  const first = await exec(given, home, ["I am Ada."]);
  const second = await exec(given, home, ["resume", "--last", "Who am I?"]);
  return { said: [...spoken(first), ...spoken(second)], errors: [...errors(first), ...errors(second)] };
}

async function tool_and_answer(given) {
  const home = mkdtempSync(join(tmpdir(), "codex-"));
  const events = await exec(given, home, ["Say hello by a command."]);
  return { said: spoken(events), ran: commands(events), errors: errors(events) };
}

// With nothing but its provider set: it offers its agents as a namespace, and the web search.
async function as_installed(given) {
  const home = mkdtempSync(join(tmpdir(), "codex-"));
  const first = await exec({ ...given, plain: true }, home, ["Close the agent."]);
  const second = given.once ? [] : await exec({ ...given, plain: true }, home, ["resume", "--last", "Search the web."]);
  return { said: [...spoken(first), ...spoken(second)], errors: [...errors(first), ...errors(second)] };
}

await serve({ two_turns, tool_and_answer, as_installed });
