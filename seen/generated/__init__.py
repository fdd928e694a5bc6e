"""The code that grpcio-tools makes of seen/seen.proto (CONTRIBUTING.md says how); nothing here is written by hand."""
