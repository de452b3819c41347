"""One module or package per protocol: `parse` for requests, `encoder` for events. No rows, no I/O."""
