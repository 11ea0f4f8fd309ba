"""The benchmarks' drivers; see ../README.md."""
