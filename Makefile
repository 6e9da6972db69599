# `make` alone prints this help; docs/HACKING.md says more.
GO       ?= go
CGO_ENABLED ?= 0
export CGO_ENABLED
GOLANGCI ?= github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOFUMPT  ?= mvdan.cc/gofumpt@v0.12.0
BENCHSTAT ?= golang.org/x/perf/cmd/benchstat@latest
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS  := -s -w -X github.com/daybook-mq/daybook/internal/cli.version=$(VERSION)
ARGS     ?=
PKG      ?= ./...
RUN      ?= .
SEED     ?= 1
ROUNDS   ?= 100
FUZZTIME ?= 30s

.DEFAULT_GOAL := help
.PHONY: help build run test test-one check fmt lint race fuzz fuzz-short sim mutations bench compat golden cross clean

help: ## print this help
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/daybook
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/daybook ./cmd/daybook

run: build ## start a broker in this folder (ARGS='--kafka 127.0.0.1:19092 ...')
	bin/daybook serve $(ARGS)

test: ## all tests; what the README names and CI calls
	$(GO) test -timeout 15m ./...

test-one: ## one test: PKG=./internal/core/groups RUN=TestName
	$(GO) test -count=1 -v -run '$(RUN)' $(PKG)

check: fmt lint race fuzz-short ## format, vet, lint, tree rules, race, short fuzz

fmt:
	@out=$$($(GO) run $(GOFUMPT) -l .); if [ -n "$$out" ]; then echo "not formatted; run: go run $(GOFUMPT) -w ."; echo "$$out"; exit 1; fi

lint:
	$(GO) vet ./...
	$(GO) run $(GOLANGCI) run ./...
	$(GO) test -count=1 ./internal/archtest

race:
	CGO_ENABLED=1 $(GO) test -race -short ./internal/core/... ./internal/storage/...

fuzz-short:
	@GO=$(GO) test/fuzz.sh 2s

fuzz: ## fuzz one target for FUZZTIME: TARGET=FuzzFile PKG=./internal/config
	$(GO) test -run '^$$' -fuzz '^$(TARGET)$$' -fuzztime $(FUZZTIME) $(PKG)

sim: ## the seeded simulator: SEED=1 ROUNDS=100
	$(GO) test -count=1 ./test/sim ./test/sim/shares -args -seed=$(SEED) -rounds=$(ROUNDS)

mutations: ## take each guard out and see the simulator find it
	$(GO) test -tags mutation -count=1 -timeout 30m -v -run TestMutations ./test/sim

bench: ## benchmarks of the hot paths, against main where a result is kept
	$(GO) test -run '^$$' -bench . -benchmem -count 6 ./internal/... | tee bench.txt
	@if [ -f bench-main.txt ]; then $(GO) run $(BENCHSTAT) bench-main.txt bench.txt; else echo "keep a base with: cp bench.txt bench-main.txt"; fi

compat: build ## real clients of other languages against the built broker
	test/compat/run

golden: ## write the golden files and transcripts anew; look at the diff
	$(GO) test -count=1 $$(grep -rlE 'datadriven"|"rewrite"' --include='*_test.go' . | xargs -n1 dirname | sort -u) -args -rewrite

cross: ## check that every platform builds
	@for target in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64; do \
		echo "build $$target"; GOOS=$${target%/*} GOARCH=$${target#*/} $(GO) build ./cmd/... ./internal/... ./daybooktest/... || exit 1; done

clean: ## remove what was built
	rm -rf bin bench.txt
