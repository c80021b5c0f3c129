# Everything that is done with this tree. `make` alone lists the targets.

SHELL       := bash
.SHELLFLAGS := -eu -o pipefail -c

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
VERSION     := $(shell git describe --tags --exact-match 2>/dev/null)
BINARY      := bin/leto
FUZZTIME    ?= 60s
BENCH_PORT  ?= 15672
ARTEMIS     := 2.40.0
RAMQP       := 0.9.5
# of bench-peers; PEERS_WRAP is put in front of each round, and PEERS_ARGS is for its test binary
SCENARIO    ?= clients 1 1-sizes 2 2-sizes 2-many 2-closed 3 5 7 8 9 9-transient
ROUNDS      ?= 5
PEERS_WRAP  ?=
PEERS_ARGS  ?=

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/leto
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o $(BINARY) ./cmd/leto

.PHONY: run
run: build ## run a broker on the default ports (ARGS="--log-level debug")
	$(BINARY) serve $(ARGS)

.PHONY: check
check: lint ## before every commit: lint and the fast tests
	go test -short ./...

.PHONY: lint
lint: ## gofmt, vet, staticcheck, direction of imports, tidy go.mod
	@unformatted=$$(gofmt -l .); \
	if [ -n "$$unformatted" ]; then echo "not formatted (gofmt -w):"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	go run $(STATICCHECK) ./...
	go test ./cmd
	go mod tidy -diff

.PHONY: test
test: lint clients ## what CI runs: lint, all tests, interop suites, race detector
	go test ./...
	$(MAKE) race

.PHONY: race
race: ## the race detector: packages, and a broker under real clients
	go test -race ./amqp/... ./engine/... ./store/... ./admin/...
	LETO_RACE=1 go test -count=1 ./interop/goamqp

.PHONY: interop
interop: clients ## other people's clients against the binary
	go test -count=1 ./interop/...

.PHONY: matrix
matrix: clients ## run the suites of foreign clients, and write what came of them into interop/README.md
	go test -count=1 ./interop/proton ./interop/rhea ./interop/java ./interop/protoncpp ./interop/fe2o3 ./interop/exchange
	go test -count=1 -run TestMatrix ./interop/exchange -update

# What is built of a client that isn't Go lies in .clients/NAME, and .clients/NAME/ready says that it is
# done. A toolchain that isn't there is no error here: the suite skips, or fails where CI is true.
.PHONY: clients
clients: .clients/proton/ready .clients/rhea/ready .clients/java/ready .clients/protoncpp/ready .clients/fe2o3/ready ## install other people's clients and build the programs on them

# Proton's bindings are built from source: that takes a C compiler and Python's headers.
.clients/proton/ready: interop/proton/requirements.txt
	python3 -m venv .clients/proton
	.clients/proton/bin/pip install --quiet --disable-pip-version-check -r interop/proton/requirements.txt
	touch $@

.clients/rhea/ready: interop/rhea/package.json interop/rhea/package-lock.json
	@if ! command -v npm >/dev/null; then echo "no npm: rhea is left out"; exit 0; fi; set -x; \
	mkdir -p $(@D) && cp $^ interop/rhea/.npmrc $(@D) && npm --prefix $(@D) ci --no-progress --loglevel=error && touch $@

.clients/java/ready: interop/java/pom.xml $(wildcard interop/java/suite/*/*.java)
	@if ! command -v mvn >/dev/null; then echo "no mvn: the Java clients are left out"; exit 0; fi; set -x; \
	mvn -B -q -f $< compile dependency:copy-dependencies && touch $@

# Debian's Proton; installed here where that is possible.
.clients/protoncpp/ready: $(wildcard interop/protoncpp/suite/*)
	@header=/usr/include/proton/container.hpp; \
	if [ ! -e $$header ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y libqpid-proton-cpp12-dev >/dev/null; \
	fi; \
	if [ ! -e $$header ] || ! command -v g++ >/dev/null; then echo "no g++ or no libqpid-proton-cpp12-dev: Proton's C++ binding is left out"; exit 0; fi; \
	set -x; mkdir -p $(@D) && \
	g++ -std=c++17 -Wall -Wextra -Wno-unused-parameter -o $(@D)/suite interop/protoncpp/suite/main.cpp -lqpid-proton-cpp -lqpid-proton -pthread && touch $@

.clients/fe2o3/ready: interop/fe2o3/Cargo.toml interop/fe2o3/Cargo.lock $(wildcard interop/fe2o3/suite/*)
	@if ! command -v cargo >/dev/null; then echo "no cargo: the Rust client is left out"; exit 0; fi; set -x; \
	cargo build --quiet --locked --manifest-path $< --target-dir $(@D)/target && touch $@

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME (60s)
	@for package in $$(go list ./...); do \
	  for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
	    echo "== $$package $$target"; \
	    go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$package; \
	  done; \
	done

.PHONY: soak
soak: ## what takes long: kills (LETO_CRASH_ROUNDS, 1000; of transactions and failures LETO_BOOK_ROUNDS, 200), scripts against the model (LETO_MODEL_SCRIPTS, 20000), power failures (as root; LETO_POWERLOSS_ROUNDS, 100), churn (LETO_CHURN, 10m), hostile peers, crowds that fail
	LETO_CRASH_ROUNDS=$${LETO_CRASH_ROUNDS:-1000} go test -count=1 -v -timeout 2h -run 'TestKill$$' ./interop/crash ./store
	LETO_MODEL_SCRIPTS=$${LETO_MODEL_SCRIPTS:-20000} go test -count=1 -v -timeout 1h -run 'TestBrokerAgainstModel$$' ./engine
	LETO_CRASH_ROUNDS=$${LETO_BOOK_ROUNDS:-200} go test -count=1 -v -timeout 2h -run 'TestKilledWhile(ManyFail|TransactionsEnd)$$' ./interop/crash
	LETO_POWERLOSS_ROUNDS=$${LETO_POWERLOSS_ROUNDS:-100} go test -count=1 -v -timeout 2h ./interop/powerloss
	LETO_CHURN=$${LETO_CHURN:-10m} go test -count=1 -v -timeout 2h ./interop/churn
	LETO_HOSTILE=strict go test -count=1 -v -timeout 2h ./interop/hostile
	LETO_THRASH=full go test -count=1 -v -timeout 1h ./interop/thrash

.PHONY: bench
bench: build ## guards (allocations exactly, times by ratio), micro benchmarks, then leto bench against a broker of its own
	go test -count=1 -run 'Alloc' ./codec ./amqp
	LETO_BENCH=1 go test -count=1 -v -run '^(TestTimesByRatio|TestAllocationsPerMessage)$$' ./amqp/server
	go test -run '^$$' -bench . -benchmem ./codec/... ./amqp/... ./engine/... ./store/...
	@$(BINARY) serve --listen 127.0.0.1:$(BENCH_PORT) --http off --log-level error --log-format json & \
	broker=$$!; trap 'kill $$broker' EXIT; sleep 0.5; \
	$(BINARY) bench --url amqp://127.0.0.1:$(BENCH_PORT) --duration 5s

.PHONY: bench-peers
bench-peers: build peers ## leto beside other brokers, into docs/benchmarks.md (SCENARIO="2 3" ROUNDS=3)
	go test -c -o bin/peers.test ./interop/peers
	mkdir -p .peers/results && rm -f $(foreach s,$(SCENARIO),.peers/results/$(s)_*)
	for round in $$(seq $(ROUNDS)); do for scenario in $(SCENARIO); do \
	  (cd interop/peers && LETO_BINARY=$(CURDIR)/$(BINARY) $(PEERS_WRAP) $(CURDIR)/bin/peers.test \
	    -test.v -test.run TestRound -scenario $$scenario -round $$round $(PEERS_ARGS)); \
	done; done
	$(MAKE) bench-tables

.PHONY: bench-tables
bench-tables: ## write what bench-peers has measured into docs/benchmarks.md once more
	cd interop/peers && go test -count=1 -run TestTables . -update

# Other brokers lie in .peers/NAME, as clients do in .clients, and one whose toolchain isn't there is left out too.
.PHONY: peers
peers: .peers/artemis/ready-$(ARTEMIS) .peers/brokerj/ready .peers/ramqp/ready-$(RAMQP) .peers/rabbitmq/ready .peers/proton/ready ## install the brokers of bench-peers

# What it says of the device is measured by `artemis create`. With libaio it writes as it is meant to.
.peers/artemis/ready-$(ARTEMIS):
	@if ! command -v mvn >/dev/null; then echo "no mvn: Artemis is left out"; exit 0; fi; set -x; rm -rf $(@D) && mkdir -p $(@D)/dist && \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y libaio1 >/dev/null; fi && \
	mvn -B -q dependency:copy -Dartifact=org.apache.activemq:apache-artemis:$(ARTEMIS):tar.gz:bin -DoutputDirectory=$(CURDIR)/$(@D) && \
	tar xzf $(@D)/apache-artemis-$(ARTEMIS)-bin.tar.gz -C $(@D)/dist --strip-components=1 && \
	$(@D)/dist/bin/artemis create --silent --user a --password a --allow-anonymous --no-web --host 127.0.0.1 $(@D)/instance >/dev/null && touch $@

.peers/brokerj/ready: interop/peers/brokerj/pom.xml
	@if ! command -v mvn >/dev/null; then echo "no mvn: Qpid Broker-J is left out"; exit 0; fi; set -x; \
	rm -rf $(@D) && mvn -B -q -f $< dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/$(@D)/lib && touch $@

.peers/ramqp/ready-$(RAMQP):
	@if ! command -v cargo >/dev/null; then echo "no cargo: rAMQP is left out"; exit 0; fi; set -x; \
	cargo install --quiet --locked --features store-redb --root $(@D) ramqp-broker@$(RAMQP) && touch $@

# The other client; where Proton's headers aren't, leto bench is measured alone.
.peers/proton/ready: interop/peers/proton/load.cpp
	@if [ ! -e /usr/include/proton/container.hpp ] || ! command -v g++ >/dev/null; then echo "no g++ or no libqpid-proton-cpp12-dev: Proton is left out"; exit 0; fi; set -x; \
	mkdir -p $(@D) && g++ -O2 -std=c++17 -o $(@D)/load $< -lqpid-proton-cpp -lqpid-proton -pthread && touch $@

# Debian's, unpacked and not installed: a package would start a service.
.peers/rabbitmq/ready:
	@if ! command -v apt-get >/dev/null; then echo "no apt-get: RabbitMQ is left out"; exit 0; fi; set -x; \
	rm -rf $(@D) && mkdir -p $(@D)/root && cd $(@D) && apt-get update -qq && \
	apt-get download -qq rabbitmq-server $$(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances rabbitmq-server | grep -o '^erlang-[a-z0-9-]*' | sort -u) && \
	for package in *.deb; do dpkg -x $$package root; done && rm -f *.deb && touch ready

.PHONY: clean
clean: ## remove what was built or installed here
	rm -rf bin .clients .peers
