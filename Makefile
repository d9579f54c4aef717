# The targets with two hashes behind them are what `make help` shows.

.DEFAULT_GOAL := help

# How long `make run` runs, with how many cabinets, how many events a second, which faults, and further flags of `doortab dev` (of
# `doortab bench` for `make bench`). What isn't set is left to the program.
DURATION ?=
CABINETS ?=
RATE     ?=
FAULTS   ?=
ARGS     ?=

# Each package that needs servers starts its own: more packages at once than this cost memory and win nothing.
PACKAGES_AT_ONCE ?= 4
TEST_TIMEOUT     ?= 10m
FUZZTIME         ?= 30s

# The Go version is in the file's name, since a linter built by an older Go refuses newer code.
GOLANGCI_VERSION := v2.15.0
GOLANGCI         := .tools/golangci-lint-$(GOLANGCI_VERSION)-$(shell go env GOVERSION)

# The packages that talk to the database.
DATABASE_PACKAGES = $(patsubst %,./%/...,$(wildcard database migrations inventory fleet door archive settlement audit auditlog promotion claims deadletter reservation spreadsheet))

.PHONY: help setup run bench test test-short test-mysql storm lint fuzz build audit fmt clean

help: ## shows this
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-12s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## installs MariaDB, Redis, Mosquitto and a C compiler where they are missing (by root or sudo)
	@scripts/setup

run: setup build ## runs the whole product with simulated cabinets (DURATION=20s CABINETS=50 RATE=100 FAULTS=... ARGS=...)
	@exec bin/doortab dev \
	  $(if $(DURATION),'--duration=$(DURATION)') $(if $(CABINETS),'--cabinets=$(CABINETS)') \
	  $(if $(RATE),'--rate=$(RATE)') $(if $(FAULTS),'--faults=$(FAULTS)') $(ARGS)

bench: setup build ## measures Doortab beside the usual design (ARGS='settle hot --quick')
	@exec bin/doortab bench $(ARGS)

test: setup ## runs all tests with the race detector, on servers of their own
	@scripts/setup curl # a page of docs is pasted into a shell
	go test -race -shuffle=on -timeout=$(TEST_TIMEOUT) -p=$(PACKAGES_AT_ONCE) ./...

test-short: setup ## runs the tests that take no more than a few seconds each
	@scripts/setup curl
	go test -short -shuffle=on -timeout=$(TEST_TIMEOUT) -p=$(PACKAGES_AT_ONCE) ./...

test-mysql: setup ## runs the tests of the packages that use the database on MySQL 9, which it unpacks into .tools
	program=$$(scripts/mysql9) && DOORTAB_TEST_MYSQL=$$program \
	  go test -race -shuffle=on -timeout=$(TEST_TIMEOUT) -p=$(PACKAGES_AT_ONCE) $(DATABASE_PACKAGES)

storm: setup ## has 20,000 persons press for 500 units over HTTP while Redis, its data and the service are killed
	DOORTAB_STORM=1 go test -count=1 -v -timeout=30m -run='^TestStorm$$' ./cmd/doortab

lint: $(GOLANGCI) ## checks formatting, code (.golangci.yml), shell scripts and alert rules
	@scripts/setup shellcheck
	$(GOLANGCI) run ./...
	shellcheck --shell=sh services/*.sh
	shellcheck scripts/* .ci/run
	promtool=$$(scripts/promtool) && "$$promtool" check rules deploy/prometheus/doortab.rules.yml && \
	  "$$promtool" test rules deploy/prometheus/doortab.rules.test.yml

$(GOLANGCI):
	GOBIN='$(CURDIR)/.tools' CGO_ENABLED=0 go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv .tools/golangci-lint $@

fuzz: ## runs each fuzz target for FUZZTIME (30s)
	scripts/fuzz $(FUZZTIME)

build: ## builds bin/doortab
	@test -e bin/doortab || echo "Building bin/doortab; the first time it takes some minutes to fetch and compile the libraries." >&2
	CGO_ENABLED=0 go build -trimpath -o bin/doortab ./cmd/doortab

audit: build ## checks the database that DOORTAB_DATABASE_DSN names
	@exec bin/doortab audit

fmt: ## formats the code
	go fmt ./...

clean: ## removes what was built; the tools in .tools stay
	rm -rf bin dist coverage.out
