.PHONY: bench wheel

# Ratios of what the inner loops reach, and bench.json; docs/performance.md explains.
bench:
	go run ./internal/bench -out bench.json

# The Python package for this machine, in dist; python/README.md explains.
wheel:
	go run ./internal/wheel
