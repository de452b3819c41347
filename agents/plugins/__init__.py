"""Plugin runtimes: processes of their own whose runners serve our runs (specs/runner-host.md).

| module | what |
|---|---|
| `envelopes`, `framing`, `pipes` | documents, how they are cut, and the ways they go |
| `channel`, `serving` | many questions at once over one pipe, both ways |
| `speech`, `released`, `v1` | what differs between the generations of the SDK |
| `asked` | what a plugin asks of the Host |
| `link`, `pool`, `rows` | connections, kept for as long as staff want them |
| `runner`, `listing` | a remote runner, as the Host sees it; those that another process can reach |
| `reaching` | which process can serve a run; runs are handed to that one |
| `testing` | what the admin's test button does |
"""
