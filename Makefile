.PHONY: bench wheel release man site

# Ratios of what the inner loops reach, and bench.json; docs/measurements/performance.md explains.
bench:
	cd tools/bench && go run . -out ../../bench.json

# The Python package for six platforms, in dist; python/README.md explains.
wheel:
	go run ./internal/wheel -all

# The command for six platforms, with bills of materials and checksums, in dist/release.
release:
	cd tools/release && go run .

# The pages of the manual, in dist/man.
man:
	go run ./cmd/sotto man dist/man

# The documentation as a site, in dist/site.
site:
	.ci/site
