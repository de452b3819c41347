"""The words between Host and runners (seed 003, specs/runner-host.md): values only, no rows, no wire.

**The entities are the wire.** Each is a frozen msgspec Struct with the seed's own field names, so a
remote runner's JSON is `msgspec.to_builtins(value)` and comes back by `msgspec.convert(json, Type)`;
an in-process runner is given the values themselves. Unknown fields are ignored when read. Bytes are
base64 on the wire (`value` is `value_base64` there) and bytes in process.

| module | what |
|---|---|
| `runner_id` | `plugin:author/name/runner`, `python:name`, `builtin:name`; the caller's identity |
| `manifest` | `RunnerManifest`: capabilities, permissions, context policy, config form |
| `messages` | `Message`, `MessageChunk`, `ToolCall`, `LLMTool`, `RetrievalEntry` |
| `resources` | `AgentResources`: what this run was granted |
| `run_context` | `AgentRunContext`: the event-first context of one run |
| `results` | `RunResult` (the envelope), its types, and ways to make them |
| `replies` | what Host calls answer with: history, events, artifacts, state |
| `parameters` | what Host calls are asked with: one Struct an action, by the wire's keys |
| `errors` | `HostRefusal`: `AgentAPIError {code, message, retryable, details}`, and its codes |
| `host_api` | `HostApi`: what a runner is handed; `runner`: the contract of a runner |

A runner has a `manifest` and `run(context, host) -> AsyncGenerator[RunResult | Fact | BuilderEvent]`. It
may say results of the seed, our canonical facts, or what the Agent API's builders make (seed 004), also
those of the published package. A `message.delta` is a piece (`results.piece`) or, with
`all_content`, all of the text so far (`results.delta`); a `message.completed` replaces its pieces.

**One door.** `HostApi` only makes asks; each goes to `Calls.call(action, ask)` or
`Calls.stream(action, ask)`. In process that is `agents.host.session.Session`, made for one run
and bound to its runner. A wire uses `agents.host.gateway`: `call(action, payload, run_id=…,
identity=…) -> dict` and `stream(…)`, which find the live session, check the identity, read the payload
and then walk through the same door. All checks (live run, identity, permission, grant, scope, size,
rate, deadline) and the audit are there and nowhere else. A refusal is `HostRefusal`; its `wire()` is
the AgentAPIError.

**Where runners come from.** `agents.host.runner_catalogue` lists them all; the wire half adds its own by
`runner_catalogue.add_source(read)`, where `read()` gives the `HostedRunner`s that runtimes have now.
"""
