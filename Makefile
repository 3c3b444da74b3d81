.PHONY: bench

# Ratios of what the inner loops reach, and bench.json; docs/performance.md explains.
bench:
	go run ./internal/bench -out bench.json
