// CopilotKit's own runtime between a browser's agent and Parley.
//
// `turns` are what the browser does, a run each: a message that the user adds, `{answer}` for the frontend
// tool that was called last, `{resume}` for every pending interrupt, or `{keep}`, so many messages of the
// conversation, behind which the rest is asked for again, with another question if there is one. Then a
// second browser connects to the thread, whose history the runtime fetches from Parley by the runner of
// docs/clients/copilotkit.md.

import { HttpAgent, runHttpRequest, transformHttpEventStream } from "@ag-ui/client";
import { CopilotRuntime, InMemoryAgentRunner, createCopilotRuntimeHandler } from "@copilotkit/runtime/v2";
import { serve } from "./serving.mjs";

process.env.COPILOTKIT_TELEMETRY_DISABLED = "true";

async function talk({ url, token, model, threadId, turns, tools, stopAfter, forwardedProps = { model } }) {
  const authorization = `Bearer ${token}`;
  class DurableRunner extends InMemoryAgentRunner {
    connect({ threadId, headers }) {
      const replay = `${url}/api/v1/agent/threads/${threadId}/connect?protocolVersion=0`;
      return transformHttpEventStream(runHttpRequest(() => fetch(replay, { headers })));
    }
  }

  const parley = new HttpAgent({
    url: `${url}/api/v1/agent/ag-ui`,
    headers: { "X-On-Disconnect": "cancel" },
  });
  const runtime = new CopilotRuntime({ agents: { default: parley }, runner: new DurableRunner() });
  const handle = createCopilotRuntimeHandler({ runtime, basePath: "/api/copilotkit" });
  const through = (address, init) => handle(new Request(address, init));
  const browser = (path) =>
    new HttpAgent({
      url: `http://runtime/api/copilotkit/agent/default/${path}`,
      threadId,
      headers: { Authorization: authorization },
      fetch: through,
    });

  const agent = browser("run");
  const answer = { runs: [] };
  function take(turn) {
    if (turn.resume) {
      return { resume: agent.pendingInterrupts.map(({ id }) => ({ interruptId: id, ...turn.resume })) };
    }
    if (turn.keep !== undefined) {
      agent.setMessages(agent.messages.slice(0, turn.keep));
      if (turn.message) agent.addMessage(turn.message);
      return {};
    }
    if (turn.answer === undefined) {
      agent.addMessage(turn);
      return {};
    }
    const called = agent.messages.flatMap((message) => message.toolCalls ?? []).at(-1);
    const told = { id: crypto.randomUUID(), role: "tool", toolCallId: called.id, content: turn.answer };
    agent.addMessage(told);
    return {};
  }

  for (const turn of turns) {
    const more = take(turn);
    const kinds = [];
    const subscriber = {
      async onEvent({ event }) {
        kinds.push(event.type);
        if (kinds.length === stopAfter) {
          const stop = `http://runtime/api/copilotkit/agent/default/stop/${threadId}`;
          await through(stop, { method: "POST", headers: { Authorization: authorization } });
        }
      },
    };
    try {
      await agent.runAgent({ tools, forwardedProps, ...more }, subscriber);
    } catch (error) {
      answer.failure = String(error?.message ?? error);
    }
    answer.runs.push(kinds);
  }
  answer.messages = agent.messages;
  answer.interrupts = agent.pendingInterrupts ?? [];
  answer.state = agent.state;
  if (stopAfter === undefined) {
    const other = browser("connect");
    await other.runAgent({});
    answer.replayed = other.messages;
  }
  return answer;
}

await serve({ talk });
