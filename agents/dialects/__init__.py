"""One module a protocol: `parse` what comes in, `encoder` for what goes out. No rows, no I/O."""
