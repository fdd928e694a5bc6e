"""What grpcio-tools makes of seen/seen.proto (README.md says how); nothing here is written by hand."""
