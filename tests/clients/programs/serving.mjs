// Plays stories with a client in its own environment: a JSON object a line in, one a line out.
//
// {story, url, token, model, …} is answered by {got: what the story returned}, or by {broken: the stack}.

import { createInterface } from "node:readline";

const answers = process.stdout.write.bind(process.stdout);
process.stdout.write = (...said) => process.stderr.write(...said);
for (const level of ["log", "info", "debug", "warn"]) console[level] = console.error;
process.on("unhandledRejection", (error) => console.error("unhandled:", error));

export async function serve(stories) {
  for await (const line of createInterface({ input: process.stdin })) {
    const given = JSON.parse(line);
    let answer;
    try {
      answer = { got: (await stories[given.story](given)) ?? null };
    } catch (error) {
      answer = { broken: String(error?.stack ?? error) };
    }
    answers(`${JSON.stringify(answer)}\n`);
  }
  process.exit(0);
}

export const WEATHER = {
  name: "get_weather",
  description: "The weather of a city.",
  parameters: {
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
    additionalProperties: false,
  },
};
