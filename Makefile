# Two commands do everything on a machine with Go and make: "make demo" and "make test".
# ARGS are handed on: make demo ARGS="--payments 200 --seed 7", make test ARGS=./worker

# The one place that names its version.
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

# What a job may cost in "make regress": about twice what a quiet machine of two cores needs,
# because neighbours on a core cost seconds too. Bytes cost the same everywhere.
BOUNDS = --max-cpu-s-per-100k 8 --max-client-cpu-s-per-100k 3 --max-wal-bytes-per-job 570

ARGS =

.DEFAULT_GOAL = help
.PHONY: help demo test check regress build fmt format vet staticcheck tidy race model fuzz fuzz-short faults faults-short bench bench-quick clean

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1	\2/p' $(MAKEFILE_LIST) | \
	while IFS='	' read -r target text; do printf '  make %-12s %s\n' "$$target" "$$text"; done

demo: ## payments, killed workers, and the account at the end: nothing lost, nothing charged twice
	@go run ./cmd/pacht demo $(ARGS)

test: ## all tests, shuffled, with the race detector if there is a C compiler; fetches PostgreSQL if it is missing
	@scripts/test $(ARGS)

check: format vet staticcheck tidy race ## all that must hold before a commit: format, vet, staticcheck, go.mod, tests with the race detector

build: ## bin/pacht, one static binary
	CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o bin/pacht ./cmd/pacht

fmt: ## format all Go files
	gofmt -l -w -s .

format: ## are all Go files formatted?
	@files=$$(gofmt -l -s .) && if [ -n "$$files" ]; then echo "not formatted, run make fmt:"; echo "$$files"; exit 1; fi

vet: ## go vet, also of the benchmark against other queues and the fault lab, which are modules of their own
	go vet ./...
	cd bench && go vet ./...
	cd faults && go vet -tags faultlab ./...

regress: ## what a job costs: CPU seconds and WAL bytes of a short drain, against their bounds
	go run ./cmd/pacht bench drain --postgres --jobs 50000 --rounds 3 $(BOUNDS)

staticcheck: ## staticcheck, built on first use
	go run $(STATICCHECK) ./...
	cd faults && go run $(STATICCHECK) -tags faultlab ./...

tidy: ## does go.mod say what the code imports?
	go mod tidy -diff

race: # the tests, and no way around the race detector
	@PACHT_RACE=must scripts/test $(ARGS)

model: ## check the formal model of the lease, and that each mutant of it fails; installs spin if root. MODEL=large takes minutes
	@scripts/model $(ARGS)

FUZZTIME = 2m

fuzz: ## run every fuzz target for FUZZTIME. ARGS names some of them
	@scripts/fuzz $(FUZZTIME) $(ARGS)

fuzz-short: ## run every fuzz target for a second
	@scripts/fuzz 1s $(ARGS)

# FAULTS starts the lab. At length each package has the machine for itself.
FAULTS = scripts/postgres && scripts/faketime && if [ -f .cache/env ]; then . ./.cache/env; fi && cd faults && go test -tags faultlab -shuffle=on -count=1
# What the short form takes: of each fault the test that shows most, at a size that counts seconds.
FAULTS_SHORT = ^Test(PaymentsAreRecorded|UndisturbedRun|WhatClientsSee|HistoriesInAFixedOrder|KillInEveryPoint|AllFaultsAtOnce|StopsThatAreCutShort|FrozenProcess|RepeatedTransaction|EveryVerbWhose|AFleetBehind|OutageOfOneRole|AFullDisk|LocksTaken|CodesOfAServer|SynchronousStandby|WorkersThatComeAndGo)

faults: ## the fault lab at length, 20 minutes: kills, cut connections, full disks, fail-over. JOBS=100000 for all faults at once
	@export PACHT_FAULTS=long PACHT_JOBS=$(if $(filter command,$(firstword $(origin JOBS))),$(JOBS)); $(FAULTS) -p 1 -timeout=40m $(or $(ARGS),./...)

faults-short: ## of the fault lab what takes a minute and a half, IN=./kill there alone. ARGS=./... runs all of its tests in short
	@$(FAULTS) $(if $(ARGS),-p 1,-p 2 -run '$(FAULTS_SHORT)') -timeout=5m $(or $(ARGS),$(IN),./...)

# Node.js is not needed: without it its queues are left out, and the page says so.
NODE_PEERS = if command -v npm >/dev/null; then cd bench/node && npm install --no-package-lock --no-audit --no-fund --silent || echo "npm failed: queues of Node.js are left out"; fi

bench: ## the same work through other queues too, half an hour; writes docs/benchmarks.md. ARGS="--only drain"
	@$(NODE_PEERS)
	cd bench && go run . run $(ARGS) && if [ -f results/latest.json ]; then go run . report; fi

bench-quick: ## try the benchmark out, some minutes; writes no page
	@$(NODE_PEERS)
	cd bench && go run . run --quick $(ARGS)

clean: ## remove what was built and fetched into this folder
	rm -rf bin .cache
