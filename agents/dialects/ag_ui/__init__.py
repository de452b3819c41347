"""AG-UI's wire (specs/ag-ui.md), shared by the dialects that use it: no rows, no I/O."""
