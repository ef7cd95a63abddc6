# make rehearse   installs what is missing, builds, runs the quick-start plan on emulated radios
# make test       installs what is missing, runs every test
# make help       the rest

# Make's lists, and so its targets, are separated by blanks.
ifneq ($(words $(CURDIR)),1)
$(error make cannot work in a folder with a blank in its name: '$(CURDIR)'. Move the checkout to one without)
endif

SHELL := /bin/bash
.SHELLFLAGS := -e -o pipefail -c
BIN := $(CURDIR)/bin
DRIVERS := $(BIN)/drivers
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
GO_DRIVERS := haul lttcp probe quic scps split tcp
GOLANGCI_LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOFLAGS_BUILD := -ldflags "-X main.version=$(VERSION)"
# One way to compile for programs, tests and linters: what one has compiled, the others use.
# The race detector alone needs cgo.
export GOFLAGS := -trimpath $(filter-out -trimpath,$(GOFLAGS))
export CGO_ENABLED := 0
ANSIBLE := $(or $(LINKTRIAL_ANSIBLE),/var/cache/linktrial/ansible)
# The lab makes network namespaces, which needs root.
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo "sudo -E")

.PHONY: help deps deps-check deps-test kernel build drivers go-drivers typst web handbook images rehearse bench clean \
	kinds check lint lint-web lint-shell lint-ansible verify verify-full generate \
	sbom sign package licences audit fuzz fuzz-turn stress faults soak test test-units test-exact test-realtime test-pages test-fast test-repeat gate-log test-web test-ansible test-images test-kernels screenshots

help:
	@echo "make rehearse      run the quick-start plan on emulated radios, from nothing to the table"
	@echo "make build         bin/linktrial, bin/drivers/* and bin/typst"
	@echo "make web           the pages that linktrial serve shows"
	@echo "make handbook      the documents as HTML, man pages and shell completions, in build/handbook"
	@echo "make kernel        the guest kernel of the virtual-time lab (some minutes, once)"
	@echo "make images        the container images, on the engine that docker talks to"
	@echo "make sbom          bills of materials of programs and drivers in build/sbom (IMAGES=1: of the images too; BUNDLE=FILE: of an install bundle)"
	@echo "make sign          signatures of programs, drivers and bills of materials with KEY=linktrial.key (IMAGES=1: of the images too; BUNDLE=FILE: of an install bundle)"
	@echo "make package       what make build has left, as a .deb and a tar in build/, for a laptop without internet (KEY=linktrial.key signs both)"
	@echo "make licences      hold every dependency against the allowed licences, and write licences/"
	@echo "make audit         a table of what can be checked of the dependencies here, and what cannot"
	@echo "make bench         measure the emulator, the drivers and the store ('go run ./tools/bench --help': a part of them)"
	@echo "make generate      generate the protobuf and SQL code, compile the eBPF objects, and record their sources and digests"
	@echo "make clean         remove bin/ and build/"
	@echo
	@echo "make check         everything that is found without running a program:"
	@echo "  make lint          golangci-lint with go vet and gofmt, and go mod tidy"
	@echo "  make lint-web      ESLint and Prettier on the pages"
	@echo "  make lint-shell    shellcheck on every script"
	@echo "  make lint-ansible  ansible-lint on the playbooks"
	@echo "  make verify        generated code is that of its sources"
	@echo "make verify-full   generate all code and expect no difference (builds sqlc: some minutes, once)"
	@echo
	@echo "make test          every test of the gate: exact ones, then those in real time, then what failed again and alone"
	@echo "  make test-units    of these, the models of the pages"
	@echo "  make test-exact    of these, Go's exact ones (ONLY=executor: packages with this in their path)"
	@echo "  make test-realtime of these, Go's in real time (ONLY=…)"
	@echo "  make test-pages    of these, the ones of the pages (ONLY=run.test.ts)"
	@echo "make test-fast     Go's exact tests of what a change reaches, three minutes at most (SINCE=main: since another commit)"
	@echo "make test-repeat   those in test files that differ (SINCE=main), 10 times, half of them beside a busy processor (TIMES=20)"
	@echo "make gate-log      the end of the last run of .ci/run on this machine, and the outcomes of those before"
	@echo "make soak          what takes long or draws at random and is not part of make test: soak tests, and fuzz targets for SOAK=30m"
	@echo "make test-web      the ones of the pages in a browser, with screenshots in build/screenshots"
	@echo "make screenshots   pictures of every page at four widths in three themes, to look at (TO=folder)"
	@echo "make kinds         run the small plans of e2e/kinds and write the store that browser tests open every page with (some minutes)"
	@echo "make fuzz          all fuzz targets for an hour together (FUZZTOTAL=60m; FUZZTIME=60s: each for a minute), and 10 000 mutated documents"
	@echo "make fuzz-turn     a minute each of some fuzz targets that decode what other machines send, 8 minutes together; other ones after each commit"
	@echo "make stress        every driver carries COUNT small transfers (10 000), and with sanitizers and race detector a tenth; ONLY=sctp: one driver (make soak has 60 of each)"
	@echo "make faults        plans with injected faults on emulated radios and on the real path, about three minutes each, from a new seed (SEED=…; make test has shorter ones)"
	@echo "make test-ansible  the playbooks on machines of their own (about 40 minutes; make test has the smallest of it)"
	@echo "make test-images   the container images and both compose files (some ten minutes; not part of make test)"
	@echo "make test-kernels  the drivers on Debian's kernels 6.1 and 6.12 in emulated machines (about 9 minutes; not part of make test)"
	@echo
	@echo ".ci/run            make check and make test: what every change must pass"

deps:
	@scripts/install-deps run build

deps-check:
	@scripts/install-deps check ansible-packages
	@$(SUDO) scripts/install-ansible

deps-test:
	@scripts/install-deps run build test kernel docker ansible-packages
	@$(SUDO) scripts/install-ansible || echo "tests of the playbooks will be skipped"
	@$(SUDO) scripts/install-bag-tools

# The guest kernel of the virtual-time lab: some minutes, once, into a cache outside the checkout.
kernel: build
	@scripts/install-deps kernel
	$(LAB_KERNEL)

LAB_KERNEL = $(SUDO) $(BIN)/linktrial lab kernel

build: deps drivers typst web web/handbook/index.html
	go build $(GOFLAGS_BUILD) -o $(BIN)/linktrial ./cmd/linktrial

drivers: deps
	@$(MAKE) --no-print-directory go-drivers
	@$(MAKE) --no-print-directory -C protocols/cxx OUT=$(DRIVERS)

go-drivers:
	@set -e; for d in $(GO_DRIVERS); do \
		from=protocols/$$d; [ ! -d $$from/cmd ] || from=$$from/cmd/$$d; \
		mkdir -p $(DRIVERS)/$$d; \
		cp $$from/driver.yaml $(DRIVERS)/$$d/driver.yaml; \
		go build $(GOFLAGS_BUILD) -o $(DRIVERS)/$$d/$$d ./$$from; \
	done

# The typesetter of reports as PDF, which a program finds beside it.
typst: deps
	@scripts/install-typst $(BIN)/typst

# The images, on the engine that docker talks to (DOCKER_HOST). Where no base image
# can be pulled, one is made with debootstrap, which needs root.
images:
	@scripts/install-deps docker
	@images/build engine
	@$(MAKE) --no-print-directory build
	TAG=$(VERSION) images/build

# Bills of materials (CycloneDX). Images are those that docker has.
IMAGES :=
BUNDLE :=
IMAGE_NAMES := $(patsubst images/%/Dockerfile,image:linktrial/%:latest,$(wildcard images/*/Dockerfile))
sbom: build
	go run ./tools/supply sbom -version $(VERSION) $(BIN)/linktrial $(foreach d,$(wildcard $(DRIVERS)/*),$(d)/$(notdir $(d))) $(BIN)/typst \
		$(if $(IMAGES),$(IMAGE_NAMES)) $(BUNDLE)

# What is handed on is signed with the private key KEY ('linktrial install-bundle key'):
# program and drivers, the bills of materials and, on request, the images that docker has
# and a bundle. Who gets them verifies with the public key.
KEY :=
sign: sbom
	@[ -n "$(KEY)" ] || { echo "make sign KEY=linktrial.key, which 'bin/linktrial install-bundle key --out linktrial' makes" >&2; exit 2; }
	$(BIN)/linktrial install-bundle sign $(BIN) build/sbom $(BUNDLE) --key $(KEY)
	$(if $(IMAGES),$(BIN)/linktrial install-bundle sign-images $(patsubst image:%,%,$(IMAGE_NAMES)) --out build/images.txt --key $(KEY))

# What make build has left, for a person to install on a laptop: two builds of one commit are
# the same bytes. Documents are in it where build/handbook has them.
package: handbook
	@set -e; files=$$(go run ./tools/laptop -bin $(BIN) -out build); \
	if [ -n "$(KEY)" ]; then $(BIN)/linktrial install-bundle sign $$files --key $(KEY); \
	else echo "not signed: make package KEY=linktrial.key signs, with a key of 'bin/linktrial install-bundle key --out linktrial'"; fi

licences: build
	go run ./tools/supply licences

audit: build
	go run ./tools/supply audit -programs $(BIN)

# All fuzz targets for FUZZTOTAL together, or for FUZZTIME each, and the test of mutated
# documents with 10 000 of them.
FUZZTOTAL ?= 60m
FUZZTIME ?=
FUZZ := LINKTRIAL_BIN=$(BIN) $(SUDO) go run ./tools/fuzz
fuzz:
	LINKTRIAL_HOSTILE=10000 go test ./orchestrator/plan -count=1 -run '^TestHostileDocuments$$' -v
	$(FUZZ) $(if $(FUZZTIME),-time $(FUZZTIME),-total $(FUZZTOTAL))

# Some of the targets that decode what comes from other machines; the number of commits
# decides which come first.
FUZZTURN ?= 8m
fuzz-turn:
	$(FUZZ) -remote -time 60s -total $(FUZZTURN) -turn $$(git rev-list --count HEAD)

# Small transfers of every driver, several at once on a busy machine, with processes told
# to stop in the middle: as it is installed, and in builds with sanitizers. ONLY=sctp/thread
# is one driver in one build.
COUNT ?= 10000
stress: drivers
	LINKTRIAL_BIN=$(BIN) LINKTRIAL_STRESS=$(COUNT) $(SUDO) go test -count=1 -v -timeout 72h -run '^TestDrivers$$/$(subst /,$$/,$(ONLY))' ./protocols/protocoltest/stress

# A plan with faults from a seed; another seed each day finds what one does not.
SEED ?= $(shell date +%Y%m%d)
faults: build
	LINKTRIAL_BIN=$(BIN) LINKTRIAL_FAULTS=$(SEED):15 LINKTRIAL_FIELD_FAULTS=$(SEED):15 $(SUDO) go test -count=1 -v -timeout 30m -run '^Test(Fault|Field)Campaign$$' ./e2e

# The pages, built again only when something that they are made of has changed.
web: web/dist/index.html

web/node_modules/.installed: web/package.json web/package-lock.json
	cd web && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

web/dist/index.html: web/node_modules/.installed web/index.html web/vite.config.ts web/tsconfig.json $(shell find web/src web/public -type f)
	cd web && npm run --silent build -- --logLevel warn

# The documents for reading without a network: as the program serves them, and for a package
# with man pages and completions beside them.
HANDBOOK := $(CURDIR)/build/handbook

web/handbook/index.html: go.mod web/src/style.css web/public/mark.svg \
		$(shell find tools/handbook docs README.md CONTRIBUTING.md */README.md protocols/protocoltest/README.md)
	go run ./tools/handbook -out web/handbook

handbook: deps web/handbook/index.html
	rm -rf $(HANDBOOK)
	go run ./tools/handbook -out $(HANDBOOK)/html
	LINKTRIAL_MANUAL=$(HANDBOOK) go test -count=1 -run '^TestManual$$' ./cmd/linktrial

rehearse: build
	$(SUDO) $(BIN)/linktrial rehearse plans/quickstart.yaml

# Everything that is found without running a program.
check: verify lint lint-web lint-shell lint-ansible

# gofmt and go vet are part of golangci-lint. No build has the tags images, kernels,
# kinds and converge, so they are named here: the second one takes another file of the
# playbooks' tests.
lint:
	go mod tidy -diff
	tool=$$(scripts/go-tool $(GOLANGCI_LINT)); \
	$$tool run --build-tags images,kernels,kinds ./...; \
	$$tool run --build-tags converge ./playbooks

lint-web: web/node_modules/.installed
	cd web && npm run --silent lint && npm run --silent format:check

lint-shell: deps-check
	scripts/lint-shell

lint-ansible: deps-check
	PATH=$(ANSIBLE)/bin:$$PATH ansible-lint --nocolor playbooks/site.yml playbooks/remove.yml

# Every test of the gate: those of the pages' models first, which take seconds; then Go's
# exact tests; then, with nothing compiled or computed beside them, those in real time,
# the pages in a browser among them; then what has failed, again and alone. The last
# lines say it all (tools/testgate, internal/testkind).
test: needs deps-test build kernel test-bases test-units
	$(TESTS) -run exact,realtime -web web $(if $(LIMIT),-limit $(LIMIT))

.PHONY: needs test-bases test-modules
needs:
	@scripts/gate-needs

# What tests would else fetch: the room that they run in has no network.
test-bases: deps-test test-modules handbook
	@$(SUDO) scripts/base-image --tar postgresql-17 postgresql-17-timescaledb >/dev/null
	@$(SUDO) scripts/base-image --tar systemd systemd-sysv dbus iproute2 >/dev/null
	@$(SUDO) scripts/base-image --tar >/dev/null

test-modules: deps
	@go mod download

# A part of it: ONLY=executor has the packages with this in their path.
ONLY ?=
LIMIT :=
ROOM := scripts/test-room
TESTGATE := go run ./tools/testgate -expected tools/testgate/expected-skips.txt
TESTS = LINKTRIAL_BIN=$(BIN) $(SUDO) $(ROOM) $(TESTGATE) -unsteady tools/testgate/unsteady.txt $(if $(ONLY),-only $(ONLY))

# Those of the exact ones that a change reaches, through the packages that import what it
# changed. What has not ended after three minutes is said, and is red.
SINCE := HEAD
test-fast: go-drivers test-modules
	go build $(GOFLAGS_BUILD) -o $(BIN)/linktrial ./cmd/linktrial
	$(TESTS) -run exact -changed $(SINCE) -limit 3m

# Those in test files that differ from SINCE, TIMES times, every second time beside a busy
# processor: what fails now and then is found here, and not by the gate that refuses a change.
TIMES ?= 10
test-repeat: deps-test build kernel test-bases
	$(TESTS) -repeat $(TIMES) -changed $(SINCE) -web web -limit 3h

# Why the last gate on this machine ended as it did.
gate-log:
	@scripts/gate-log

test-units: web/node_modules/.installed
	cd web && npm run --silent test -- --reporter=dot

test-exact: deps-test build kernel test-bases
	$(TESTS) -run exact

test-realtime: deps-test build kernel test-bases
	$(TESTS) -run realtime

test-pages: deps-test build test-units
	$(TESTS) -run realtime -web web -only web/tests/$(ONLY)

# What takes long or draws at random, and is not part of make test: soak tests, then fuzz
# targets for SOAK.
SOAK ?= 30m
soak: ROOM += --network # machines that install packages
soak: deps-test build kernel test-bases
	LINKTRIAL_SOAK=1 $(TESTS) -run soak -limit 3h
	$(MAKE) --no-print-directory fuzz-turn FUZZTURN=$(SOAK)

# The pages in a real browser, with a real orchestrator and lab; screenshots go to build/screenshots,
# which make test-pages takes none of: they are for people, and cost processor time.
test-web: deps-test build
	cd web && LINKTRIAL_BIN=$(BIN) LINKTRIAL_SHOTS=$(CURDIR)/build/screenshots $(SUDO) ../scripts/test-room npm run --silent test:browser

# The store with a campaign of every kind of plan and outcome (e2e/kinds/README.md), made
# again: in the virtual-time lab and in a lab in real time.
kinds: build kernel
	go vet -tags kinds ./e2e
	LINKTRIAL_BIN=$(BIN) $(SUDO) go test -tags kinds -count=1 -timeout 60m -run '^TestMakeKinds$$' ./e2e

# Pictures of every page at four widths in three themes, with contact sheets, to look at.
# TO=folder; VIEWS=expression for some of them; THEMES=light,dark,sun.
TO ?= $(CURDIR)/build/screenshots/pages
VIEWS :=
THEMES := light,dark,sun
screenshots: deps-test build
	cd web && LINKTRIAL_BIN=$(BIN) LINKTRIAL_SHOTS=$(abspath $(TO)) LINKTRIAL_VIEWS='$(VIEWS)' LINKTRIAL_THEMES=$(THEMES) \
		$(SUDO) npx vitest run --config vitest.screenshots.config.ts

# The playbooks, on machines of their own that systemd-nspawn boots: bare, half-installed, without a network.
test-ansible: build
	@$(SUDO) scripts/install-deps ansible
	go vet -tags converge ./playbooks
	LINKTRIAL_BIN=$(BIN) $(SUDO) go test -tags converge -count=1 -timeout 90m ./playbooks

# The images, the conformance of those of the drivers, and compose up to the table, without and with TLS.
test-images: build
	@$(SUDO) scripts/install-deps docker
	go vet -tags images ./images
	LINKTRIAL_BIN=$(BIN) $(SUDO) go test -tags images -json -count=1 -timeout 40m ./images | go run ./tools/testgate -expected tools/testgate/expected-skips.txt

# The drivers on stock kernels in emulated machines, one after the other: each takes
# a processor for itself. UPDATE=-update writes the tables into docs/kernels.md.
UPDATE :=
test-kernels: drivers
	@scripts/install-deps qemu
	go vet -tags kernels ./e2e/kernels/...
	{ failed=0; LINKTRIAL_BIN=$(BIN) go test -json -tags kernels -count=1 -timeout 60m ./e2e/kernels/machine || failed=1; \
		LINKTRIAL_BIN=$(BIN) go test -json -tags kernels -count=1 -timeout 60m ./e2e/kernels $(UPDATE) || failed=1; exit $$failed; } | $(TESTGATE)
	@cat build/kernels/tables.md

bench: build
	LINKTRIAL_BIN=$(BIN) $(SUDO) go run ./tools/bench
	$(SUDO) go test -run '^$$' -bench . -v -count=1 ./agents/packettimes ./agents/runner ./protocols/haul/bench ./protocols/quic ./protocols/split ./protocols/tcp/bpf

# protoc-gen-es is one of the pages' packages.
generate: web/node_modules/.installed
	scripts/generate
	go run ./tools/generated -write

# The recorded digests show a source that changed without its generated code, or
# generated code that somebody edited. What they cannot show is a manifest written
# without generating. For protobuf that is generated here as well: its tools take
# a minute to install, once, and 3 s to run. Not for SQL: sqlc alone takes some
# seven minutes of two cores to build. make verify-full does both.
verify: web/node_modules/.installed
	go run ./tools/generated
	scripts/generate compare

verify-full: web/node_modules/.installed
	scripts/generate
	go run ./tools/generated
	git diff --exit-code -- api/gen ':(glob)orchestrator/**/*db/*' protocols/tcp/bpf/objects web/src/gen

clean:
	rm -rf bin build web/dist/assets web/dist/index.html web/handbook/* web/node_modules
