"""Plugin runtimes: separate processes whose runners serve Parley's runs (specs/runner-host.md).

| module | content |
|---|---|
| `envelopes`, `framing`, `transports` | documents, their division into parts, and their transports |
| `channel`, `responder` | many requests at once over one pipe, in both directions |
| `wire_protocol`, `released_protocol`, `v1_protocol` | the differences between generations of the SDK |
| `host_requests` | a plugin's requests to the Host |
| `connection`, `runtime` | connections, kept as long as staff want them |
| `runner`, `runner_listing` | a remote runner for the Host; runners that another process reaches |
| `placement` | the process that can serve a run, and to which the run is handed |
| `connection_check` | the test button of the admin |
| `failure_reasons` | why a runtime cannot be reached, in words for staff |
"""
