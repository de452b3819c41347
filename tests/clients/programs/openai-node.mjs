// OpenAI's Node SDK: both of its APIs.

import OpenAI from "openai";
import { WEATHER, serve } from "./serving.mjs";

const TOOL = { type: "function", ...WEATHER, strict: true };
const CHAT_TOOL = { type: "function", function: WEATHER };
const sdk = ({ url, token }) => new OpenAI({ baseURL: `${url}/v1`, apiKey: token, maxRetries: 0 });

async function two_turns(given) {
  const { responses } = sdk(given), { model } = given;
  const first = await responses.create({ model, input: "I am Ada.", instructions: "Talk like a pirate." });
  const second = await responses.create({
    model, input: "Who am I?", instructions: "Talk like a judge.", previous_response_id: first.id,
  });
  return [first.output_text, second.output_text];
}

async function stream(given) {
  const { responses } = sdk(given), { model } = given;
  let words = "";
  const events = await responses.create({ model, input: "Count.", stream: true });
  for await (const event of events) if (event.type === "response.output_text.delta") words += event.delta;
  const whole = await responses.stream({ model, input: "Again." }).finalResponse();
  return [words, whole.output_text];
}

async function tool_and_answer(given) {
  const { responses } = sdk(given), { model } = given, tools = [TOOL];
  const asked = await responses.create({ model, input: "Is it warm in Ulm?", tools });
  const call = asked.output.at(-1);
  const told = { type: "function_call_output", call_id: call.call_id, output: "21 °C" };
  const answer = await responses.create({ model, previous_response_id: asked.id, input: [told], tools });
  return [call.name, call.arguments, answer.output_text];
}

async function forced_tool(given) {
  const { responses } = sdk(given), { model } = given, tools = [TOOL];
  const forced = await responses.create({ model, input: "Ulm?", tools, tool_choice: "required" });
  const plain = await responses.create({ model, input: "Ulm?", tools, tool_choice: "none" });
  return [forced.output.at(-1).name, plain.output_text];
}

async function wrong_then_right(given) {
  const { responses } = sdk(given), { model } = given;
  let printed = "nothing was refused";
  try {
    await responses.create({ model: "no-such-model", input: "Hello." });
  } catch (error) {
    printed = `${error.constructor.name}: ${error.message} (${error.code})`;
  }
  return [printed, (await responses.create({ model, input: "Hello." })).output_text];
}

async function models(given) {
  const listed = [];
  for await (const model of sdk(given).models.list()) listed.push(model.id);
  const model = listed.find((name) => given.model.endsWith(name));
  const answer = await sdk(given).responses.create({ model, input: "Hello." });
  return [listed.includes("demo"), answer.output_text];
}

async function chat_two_turns(given) {
  const { completions } = sdk(given).chat, { model } = given;
  const messages = [{ role: "system", content: "Talk like a pirate." }, { role: "user", content: "I am Ada." }];
  const first = await completions.create({ model, messages });
  messages[0] = { role: "system", content: "Talk like a judge." };
  messages.push(first.choices[0].message, { role: "user", content: "Who am I?" });
  const second = await completions.create({ model, messages });
  return [first.choices[0].message.content, second.choices[0].message.content];
}

async function chat_stream(given) {
  const { completions } = sdk(given).chat;
  let words = "";
  const messages = [{ role: "user", content: "Count." }];
  const chunks = await completions.create({ model: given.model, messages, stream: true });
  for await (const chunk of chunks) words += chunk.choices[0]?.delta.content ?? "";
  return words;
}

async function chat_tool_and_answer(given) {
  const { completions } = sdk(given).chat;
  const messages = [{ role: "user", content: "Is it warm in Ulm?" }];
  const called = [];
  const tool = {
    type: "function",
    function: { ...WEATHER, parse: JSON.parse, function: ({ city }) => (called.push(city), "21 °C") },
  };
  const runner = completions.runTools({ model: given.model, messages, tools: [tool] });
  return [await runner.finalContent(), called];
}

async function chat_forced_tool(given) {
  const { completions } = sdk(given).chat, { model } = given;
  const messages = [{ role: "user", content: "Ulm?" }], tools = [CHAT_TOOL];
  const tool_choice = { type: "function", function: { name: "get_weather" } };
  const forced = await completions.create({ model, messages, tools, tool_choice });
  const plain = await completions.create({ model, messages, tools, tool_choice: "none" });
  return [forced.choices[0].message.tool_calls[0].function.name, plain.choices[0].message.content];
}

await serve({
  two_turns, stream, tool_and_answer, forced_tool, wrong_then_right,
  models, chat_two_turns, chat_stream, chat_tool_and_answer, chat_forced_tool,
});
