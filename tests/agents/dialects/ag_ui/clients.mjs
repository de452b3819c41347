// The unmodified AG-UI clients of both generations, driven over stdin and stdout: a JSON object a line.
//
// {op: "new", agent, generation, url, threadId, headers, messages, state} makes a client.
// {op: "run", agent, show, add, resume, params, connect, sse, piece, cutAfter, abortAfter} runs it once and
// answers with what the app would see. `show` replaces its messages, as an app does that edits or asks
// again. `resume` answers every pending interrupt so. `sse` is a body to read in place of the network's, in pieces of `piece`
// bytes; `cutAfter` breaks the connection behind so many events, `abortAfter` calls abortRun there.
// {op: "chains", chains, atOnce} answers lists of such objects, each list in its order, so many lists at
// once; the warnings of all stand in the last answer.

import { createInterface } from "node:readline";
import * as modern from "ag-ui-client";
import * as legacy from "ag-ui-client-0";

const libraries = { "1.0.0": modern, "0.0.59": legacy };
const agents = new Map();
let warnings = [];
let chained = false;
for (const level of ["warn", "error", "log", "info", "debug"]) {
  console[level] = (...said) => warnings.push(said.map(String).join(" "));
}

function make({ agent, generation, url, threadId, headers, messages, state }) {
  const library = libraries[generation];
  class Connecting extends library.HttpAgent {
    connect(input) {
      const get = () => this.fetch(this.connectUrl, { headers: this.headers });
      return library.transformHttpEventStream(library.runHttpRequest(get));
    }
  }
  agents.set(agent, new Connecting({ url, threadId, headers, initialMessages: messages, initialState: state }));
  return {};
}

async function run({ agent: name, show, add, resume, params, connect, sse, piece, cutAfter, abortAfter }) {
  const agent = agents.get(name);
  if (resume) {
    const answered = ({ id }) => ({ interruptId: id, ...resume });
    params = { ...params, resume: (agent.pendingInterrupts ?? []).map(answered) };
  }
  const seen = [], errors = [], pending = [], called = [];
  if (!chained) warnings = [];
  let outcome = null, status = null;
  agent.connectUrl = connect;
  agent.fetch = async (url, init) => {
    const response = sse === undefined ? await fetch(url, init) : fed(sse, piece);
    status = response.status;
    return cutAfter === undefined || !response.ok ? response : cut(response, cutAfter);
  };
  if (show) agent.setMessages(show);
  for (const message of add ?? []) agent.addMessage(message);
  const subscriber = {
    onEvent({ event }) {
      seen.push(event);
      if (seen.length === abortAfter) agent.abortRun();
    },
    onRunErrorEvent({ event }) { errors.push({ code: event.code, message: event.message }); },
    onRunFinishedEvent(finished) {
      outcome = finished.outcome;
      pending.push(...(finished.pendingToolCallIds ?? []));
    },
    onNewToolCall({ toolCall }) { called.push(structuredClone(toolCall)); },
  };
  let failure = null;
  try {
    await (connect ? agent.connectAgent(params, subscriber) : agent.runAgent(params, subscriber));
  } catch (error) {
    failure = { message: String(error?.message ?? error), status: error?.status, payload: error?.payload };
  }
  return {
    messages: agent.messages, state: agent.state, interrupts: agent.pendingInterrupts ?? [],
    events: seen, errors, outcome, pending, called, failure, status, warnings,
  };
}

function fed(text, piece = 1 << 30) {
  const bytes = Buffer.from(text);
  const body = new ReadableStream({
    start(controller) {
      for (let at = 0; at < bytes.length; at += piece) controller.enqueue(bytes.subarray(at, at + piece));
      controller.close();
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

// The response as far as its first `count` events, and then a broken connection.
function cut(response, count) {
  const reader = response.body.getReader();
  let rest = "", left = count;
  const decoder = new TextDecoder();
  const body = new ReadableStream({
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) return controller.close();
      const frames = (rest + decoder.decode(value, { stream: true })).split("\n\n");
      rest = frames.pop();
      for (const frame of frames) {
        if (left === 0) break;
        if (frame.includes("data:")) left -= 1;
        controller.enqueue(Buffer.from(`${frame}\n\n`));
      }
      if (left === 0) {
        await reader.cancel().catch(() => {});
        await new Promise((done) => setTimeout(done, 5));
        controller.error(new Error("connection cut"));
      }
    },
  });
  return new Response(body, { headers: response.headers });
}

async function chains({ chains: asked, atOnce }) {
  const answers = asked.map(() => []);
  let next = 0;
  chained = true;
  warnings = [];
  const work = async () => {
    while (next < asked.length) {
      const place = next++;
      for (const { op, ...given } of asked[place]) answers[place].push(structuredClone(await operations[op](given)));
    }
  };
  await Promise.all(Array.from({ length: atOnce ?? 1 }, work));
  chained = false;
  return { answers, warnings };
}

const operations = { new: make, run, chains };
process.on("uncaughtException", (error) => warnings.push(`uncaught: ${error.message}`));
for await (const line of createInterface({ input: process.stdin })) {
  const { op, ...given } = JSON.parse(line);
  let answer;
  try {
    answer = await operations[op](given);
  } catch (error) {
    answer = { broken: String(error?.stack ?? error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
