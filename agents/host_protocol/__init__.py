"""The protocol between the Host and runners (seed 003, specs/runner-host.md): values, no rows, no wire.

**The entities are the wire.** Each is a frozen msgspec Struct with the seed's own field names, so a
remote runner's JSON is `msgspec.to_builtins(value)`, and `msgspec.convert(json, Type)` reads it; a
runner in the process receives the values themselves. Unknown fields are ignored when read. Bytes are
base64 on the wire (`value` is `value_base64` there) and bytes in the process.

| module | content |
|---|---|
| `runner_id` | `plugin:author/name/runner`, `python:name`, `builtin:name`; the caller's identity |
| `manifest` | `RunnerManifest`: capabilities, permissions, context policy, config form |
| `messages` | `Message`, `MessageChunk`, `ToolCall`, `LLMTool`, `RetrievalEntry` |
| `resources` | `AgentResources`: the grants of a run |
| `run_context` | `AgentRunContext`: the event-first context of one run |
| `results` | `RunResult` (the envelope), its types, and functions that make them |
| `replies` | the replies of Host calls: history, events, artifacts, state |
| `parameters` | the parameters of Host calls: one Struct per action, with the wire's keys |
| `errors` | `HostRefusal`: `AgentAPIError {code, message, retryable, details}`, and its codes |
| `host_api` | `HostApi`: the Host as a runner uses it; `runner`: the contract of a runner |

A runner has a `manifest` and `run(context, host) -> AsyncGenerator[RunResult | Fact | BuilderEvent]`. It
may yield results of the seed, canonical facts, or objects that builders of the Agent API make (seed
004), also those of the published package. A `message.delta` is a piece (`results.piece`) or, with
`all_content`, all of the text so far (`results.delta`); a `message.completed` replaces its pieces.

**One door.** `HostApi` only makes requests; each goes to `Calls.call(action, params)` or
`Calls.stream(action, params)`. In the process that is `agents.host.session.Session`, made for one run
and bound to its runner. A wire uses `agents.host.gateway`: `call(action, payload, run_id=…,
identity=…) -> dict` and `stream(…)`, which find the live session, check the identity, parse the payload
and then use the same door. All checks (live run, identity, permission, grant, scope, size, rate,
deadline) and the audit are there and nowhere else. A refusal is `HostRefusal`; its `wire()` is the
AgentAPIError.

**Sources of runners.** `agents.host.runner_catalogue` lists all runners; the wire half adds its own by
`runner_catalogue.add_source(read)`, where `read()` returns the `HostedRunner`s of the runtimes.
"""
