"""AG-UI's wire (specs/ag-ui.md), shared by the dialects that speak it: no rows, no I/O."""
