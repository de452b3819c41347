// Vercel's AI SDK with its OpenAI provider: Responses, which is its default, and Chat Completions.

import { createOpenAI } from "@ai-sdk/openai";
import { generateObject, generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { serve } from "./serving.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false;
const city = jsonSchema({
  type: "object",
  properties: { name: { type: "string" }, people: { type: "number" } },
  required: ["name", "people"],
  additionalProperties: false,
});
const inputSchema = jsonSchema({
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
});
const description = "The weather of a city.";
const get_weather = tool({ description, inputSchema, execute: async ({ city }) => `21 °C in ${city}` });

function model({ url, token, model, chat }) {
  const provider = createOpenAI({ baseURL: `${url}/v1`, apiKey: token });
  return chat ? provider.chat(model) : provider(model);
}

const ask = (given, more) => generateText({ model: model(given), maxRetries: 0, ...more });
const user = (content) => ({ role: "user", content });

// The second turn sends what the SDK made of the first, which is references to items where it may.
async function two_turns(given) {
  const first = await ask(given, { system: "Talk like a pirate.", messages: [user("I am Ada.")] });
  const messages = [user("I am Ada."), ...first.response.messages, user("Who am I?")];
  const second = await ask(given, { system: "Talk like a judge.", messages });
  return [first.text, second.text];
}

// The app takes its last question back and asks another.
async function edited(given) {
  const first = await ask(given, { messages: [user("I am Ada.")] });
  const kept = [user("I am Ada."), ...first.response.messages];
  await ask(given, { messages: [...kept, user("Who am I?")] });
  return (await ask(given, { messages: [...kept, user("Who are you?")] })).text;
}

async function not_stored(given) {
  const providerOptions = { openai: { store: false } };
  const first = await ask(given, { messages: [user("I am Ada.")], providerOptions });
  const messages = [user("I am Ada."), ...first.response.messages, user("Who am I?")];
  return [first.text, (await ask(given, { messages, providerOptions })).text];
}

async function stream(given) {
  const result = streamText({ model: model(given), maxRetries: 0, prompt: "Count." });
  let words = "";
  for await (const piece of result.textStream) words += piece;
  return [words, (await result.usage).totalTokens, await result.finishReason];
}

async function tool_and_answer(given) {
  const steps = { tools: { get_weather }, stopWhen: stepCountIs(3) };
  const first = await ask(given, { messages: [user("Is it warm in Ulm?")], ...steps });
  const messages = [user("Is it warm in Ulm?"), ...first.response.messages, user("And now?")];
  return [first.text, (await ask(given, { messages, ...steps })).text];
}

async function forced_tool(given) {
  const forced = { tools: { get_weather }, toolChoice: { type: "tool", toolName: "get_weather" } };
  const named = await ask(given, { prompt: "Ulm?", ...forced });
  const some = await ask(given, { prompt: "Ulm?", ...forced, toolChoice: "required" });
  const none = await ask(given, { prompt: "Ulm?", ...forced, toolChoice: "none" });
  return [named.toolCalls[0].toolName, some.toolCalls[0].toolName, none.text];
}

async function structured(given) {
  const shaped = await generateObject({ model: model(given), maxRetries: 0, schema: city, prompt: "A city." });
  return [shaped.object, (await ask(given, { prompt: "In words." })).text];
}

async function image(given) {
  const asked = user([{ type: "text", text: "What is it?" }, { type: "image", image: given.image }]);
  const first = await ask(given, { messages: [asked] });
  const second = await ask(given, { messages: [asked, ...first.response.messages, user("What colour?")] });
  return [first.text, second.text];
}

async function wrong_then_right(given) {
  let printed = "nothing was refused";
  try {
    await ask({ ...given, model: "no-such-model" }, { prompt: "Hello." });
  } catch (error) {
    printed = error.message;
  }
  return [printed, (await ask(given, { prompt: "Hello." })).text];
}

await serve({
  two_turns, edited, not_stored, stream, tool_and_answer, forced_tool, structured, image, wrong_then_right,
});
