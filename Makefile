# make rehearse   installs what is missing, builds, runs the quick-start plan on emulated radios
# make test       installs what is missing, runs every test
# make help       the rest

SHELL := /bin/bash
BIN := $(CURDIR)/bin
DRIVERS := $(BIN)/drivers
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
GO_DRIVERS := tcp
GOFLAGS_BUILD := -trimpath -ldflags "-X main.version=$(VERSION)"
# The lab makes network namespaces, which needs root.
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo "sudo -E")

.PHONY: help test-ansible test-images kernel web test-web build drivers rehearse images test bench lint verify generate deps deps-test clean

help:
	@echo "make rehearse   run the quick-start plan on emulated radios, from nothing to the table"
	@echo "make build      bin/linktrial and bin/drivers/*"
	@echo "make web        the pages that linktrial serve shows"
	@echo "make test       every test"
	@echo "make test-ansible   the playbooks on machines of their own (some minutes; make test has the smallest of it)"
	@echo "make test-images    the container images and both compose files (some ten minutes; not part of make test)"
	@echo "make kernel     the guest kernel of the virtual-time lab (some minutes, once)"
	@echo "make images     the container images, on the engine that docker talks to"
	@echo "make bench      the figures of the emulator, the drivers and the store"
	@echo "make lint       golangci-lint (built from its module on first use)"
	@echo "make generate   protobuf and SQL code anew;  make verify  proves it fresh"
	@echo "make clean      remove bin/ and build/"

deps:
	@scripts/install-deps run build

deps-test:
	@scripts/install-deps run build test kernel docker ansible-packages
	@$(SUDO) scripts/install-ansible || echo "tests of the playbooks will be skipped"

# The guest kernel of the virtual-time lab: some minutes, once, into a cache outside the checkout.
kernel: build
	@scripts/install-deps kernel
	$(SUDO) $(BIN)/linktrial lab kernel

build: deps drivers web
	CGO_ENABLED=0 go build $(GOFLAGS_BUILD) -o $(BIN)/linktrial ./cmd/linktrial

drivers: deps
	@set -e; for d in $(GO_DRIVERS); do \
		mkdir -p $(DRIVERS)/$$d; \
		cp protocols/$$d/driver.yaml $(DRIVERS)/$$d/driver.yaml; \
		CGO_ENABLED=0 go build $(GOFLAGS_BUILD) -o $(DRIVERS)/$$d/$$d ./protocols/$$d; \
	done
	@$(MAKE) --no-print-directory -C protocols/cxx OUT=$(DRIVERS)

# The images, on the engine that docker talks to (DOCKER_HOST). Where no base image
# can be pulled, one is made with debootstrap, which needs root.
images: build
	@scripts/install-deps docker
	TAG=$(VERSION) images/build

# The pages, built again only when something that they are made of has changed.
web: web/dist/index.html

web/node_modules/.installed: web/package.json web/package-lock.json
	cd web && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

web/dist/index.html: web/node_modules/.installed web/index.html web/vite.config.ts web/tsconfig.json $(shell find web/src web/public -type f)
	cd web && npm run --silent build -- --logLevel warn

rehearse: build
	$(SUDO) $(BIN)/linktrial rehearse plans/quickstart.yaml

# Every test, with the list of skipped ones held against the expected one.
test: deps-test build kernel
	cd web && npm run --silent test -- --reporter=dot
	go vet ./...
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not gofmt-ed:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	LINKTRIAL_BIN=$(BIN) $(SUDO) go test -json -timeout 20m ./... | go run ./tools/testgate -expected tools/testgate/expected-skips.txt
	cd web && LINKTRIAL_BIN=$(BIN) $(SUDO) npm run --silent test:browser

# The pages in a real browser, with a real orchestrator and lab; screenshots go to build/screenshots.
test-web: deps-test build
	cd web && LINKTRIAL_BIN=$(BIN) $(SUDO) npm run --silent test:browser

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

bench: build
	$(SUDO) $(BIN)/linktrial bench

lint:
	go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0 run ./...

generate:
	cd tools && npm install --no-audit --no-fund --silent
	cd web && npm ci --no-audit --no-fund --loglevel=error
	GOBIN=$(CURDIR)/build/tools go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
	GOBIN=$(CURDIR)/build/tools go install connectrpc.com/connect/cmd/protoc-gen-connect-go@v1.21.1
	GOBIN=$(CURDIR)/build/tools go install github.com/sqlc-dev/sqlc/cmd/sqlc@v1.31.1
	cd api && PATH=$(CURDIR)/build/tools:$$PATH ../tools/node_modules/.bin/buf lint
	cd api && PATH=$(CURDIR)/build/tools:$$PATH ../tools/node_modules/.bin/buf generate
	build/tools/sqlc generate

verify: generate
	git diff --exit-code -- api/gen orchestrator/store web/src/gen

clean:
	rm -rf bin build web/dist/assets web/dist/index.html web/node_modules
