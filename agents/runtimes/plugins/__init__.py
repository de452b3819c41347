"""Plugin runtimes: processes of their own whose runners serve our runs (specs/runner-host.md).

| module | what |
|---|---|
| `envelopes`, `framing`, `transports` | documents, how they are cut, and the ways they go |
| `channel`, `responder` | many questions at once over one pipe, both ways |
| `wire_protocol`, `released_protocol`, `v1_protocol` | what differs between the generations of the SDK |
| `host_requests` | what a plugin asks of the Host |
| `connection`, `pool`, `runtime` | connections, kept for as long as staff want them |
| `runner`, `runner_listing` | a remote runner as the Host sees it; those that another process reaches |
| `placement` | which process can serve a run; runs are handed to that one |
| `connection_check` | what the admin's test button does |
| `failure_reasons` | why a runtime cannot be reached, in words for staff |
"""
