"""The benchmarks, by subject. script/bench runs each by its name."""
