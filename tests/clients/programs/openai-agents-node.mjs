// @openai/agents: its runner over Responses.

import { Agent, OpenAIResponsesModel, run, setTracingDisabled, tool } from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";
import { serve } from "./serving.mjs";

setTracingDisabled(true);
const City = z.object({ name: z.string(), people: z.number() });
const weather = tool({
  name: "get_weather",
  description: "The weather of a city.",
  parameters: z.object({ city: z.string() }),
  execute: async ({ city }) => `21 °C in ${city}`,
});

function agent({ url, token, model }, more = {}) {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: token, maxRetries: 0 });
  return new Agent({
    name: "Guide", instructions: "Talk like a pirate.", model: new OpenAIResponsesModel(client, model), ...more,
  });
}

async function two_turns(given) {
  const first = await run(agent(given), "I am Ada.");
  const said = [...first.history, { role: "user", content: "Who am I?" }];
  const second = await run(agent(given, { instructions: "Talk like a judge." }), said);
  return [first.finalOutput, second.finalOutput];
}

async function previous_response(given) {
  const guide = agent(given);
  const first = await run(guide, "I am Ada.");
  const second = await run(guide, "Who am I?", { previousResponseId: first.lastResponseId });
  return [first.finalOutput, second.finalOutput];
}

async function stream(given) {
  const result = await run(agent(given), "Count.", { stream: true });
  let words = "";
  for await (const piece of result.toTextStream()) words += piece;
  await result.completed;
  return [words, result.finalOutput];
}

async function tool_and_answer(given) {
  return (await run(agent(given, { tools: [weather] }), "Is it warm in Ulm?")).finalOutput;
}

async function forced_tool(given) {
  const modelSettings = { toolChoice: "get_weather" };
  return (await run(agent(given, { tools: [weather], modelSettings }), "Ulm?")).finalOutput;
}

async function structured(given) {
  const shaped = await run(agent(given, { outputType: City }), "A city.");
  const said = [...shaped.history, { role: "user", content: "In words." }];
  return [shaped.finalOutput, (await run(agent(given), said)).finalOutput];
}

async function wrong_then_right(given) {
  let printed = "nothing was refused";
  try {
    await run(agent({ ...given, model: "no-such-model" }), "Hello.");
  } catch (error) {
    printed = error.message;
  }
  return [printed, (await run(agent(given), "Hello.")).finalOutput];
}

await serve({ two_turns, previous_response, stream, tool_and_answer, forced_tool, structured, wrong_then_right });
