# The targets a person types. `make help` lists them.
.DEFAULT_GOAL := help
NODE := node_modules/.bin/node
VITEST := $(NODE) node_modules/vitest/vitest.mjs
DEBIAN := tools/install-debian.sh
N ?= 1000000
SEED ?= 1
DEMO_INDEX := var/demo/state/index/current/index.pgx
# What is compiled once is not compiled at every start.
export NODE_COMPILE_CACHE ?= $(CURDIR)/node_modules/.cache/pagegate
DATASET ?= var/dataset-$(N)

.PHONY: help install demo serve check test bench bench-40m dataset eval fuzz chaos chaos-refresh chaos-restart chaos-fleet soak dist differential test-integrations test-console test-systemd test-fleet test-ledger demo-fleet clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: node_modules/.installed ## install what package-lock.json pins

node_modules/.installed: package.json package-lock.json
	npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	$(NODE) tools/glibc/install.ts
	@touch $@

demo: install ## build the sample index, serve it, ask real questions
	@$(NODE) tools/demo/demo.ts

serve: install $(DEMO_INDEX) ## go on from the demo: serve its index and account until Ctrl-C
	@export PAGEGATE_CONSOLE_ENABLED=true; \
	src/pagegate console user add demo --role operator --config var/demo/pagegate.json >/dev/null 2>&1 || true; \
	echo "The console, signed in by this link once, within an hour, when the server answers:"; \
	src/pagegate console link demo --config var/demo/pagegate.json; \
	exec src/pagegate serve --config var/demo/pagegate.json

$(DEMO_INDEX):
	@$(MAKE) --no-print-directory demo

check: install ## types, lint, format
	$(NODE) node_modules/typescript/bin/tsc --noEmit
	node_modules/.bin/biome check .

test: check ## types, lint, format, and the tests that need no other programs
	$(VITEST) run

bench/node_modules/.installed: install bench/package.json bench/package-lock.json
	cd bench && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

bench: bench/node_modules/.installed ## every bench at 5 million records, under 10 minutes
	$(NODE) bench/all.ts --records 5000000 --out var/bench

bench-40m: bench/node_modules/.installed ## the index benches at 1, 5 and 40 million records
	$(NODE) bench/all.ts --records 40000000 --out var/bench

dataset: install ## a synthetic drop of N records in DATASET, seeded with SEED
	$(NODE) tools/dataset/generate.ts --records $(N) --seed $(SEED) --out $(DATASET)

eval: install ## what share of labelled real pages the shipped rules judge right
	$(NODE) tools/eval/eval.ts

fuzz: install ## mutate URLs for half a minute: no crash, one verdict for every spelling
	$(NODE) tools/fuzz/fuzz.ts

chaos: install ## kill, stop and starve a real server under load, and lose its power: 1,000 rounds
	$(NODE) tools/chaos/metering.ts

chaos-refresh: install ## kill a refresh at 100 random moments
	$(NODE) tools/chaos/refresh.ts

chaos-restart: install ## restart, upgrade and break a server under load, and kill it while it hands over
	$(NODE) tools/chaos/restart.ts

chaos-fleet: install ## a fleet with PostgreSQL and a standby: kill, cut, promote, forget, and count: 100 rounds
	$(NODE) tools/chaos/fleet.ts

soak: install ## 15 minutes of mixed load with refreshes, rotations and kills
	$(NODE) tools/chaos/soak.ts

dist: install ## a tarball that runs on an offline host, and the packages of the guard
	$(NODE) tools/dist/make-dist.ts

differential: install ## local verdicts of the guard beside the server's: all labelled pages, a million generated URLs
	DIFFERENTIAL_QUESTIONS=1000000 $(VITEST) run test/guard/local-verdicts.test.ts --testTimeout 3600000 --hookTimeout 3600000

test-integrations: install ## proxies and a browser from Debian's packages, for real (installs them when root)
	@$(DEBIAN) /usr/lib/squid/security_file_certgen=squid-openssl /usr/sbin/nginx=nginx-light /usr/bin/mitmdump=mitmproxy \
	  /usr/bin/chromium=chromium /usr/bin/certutil=libnss3-tools /usr/bin/openssl=openssl /usr/bin/curl=curl \
	  /usr/bin/python3=python3 /sbin/ip=iproute2 /usr/sbin/nft=nftables /usr/bin/promtool=prometheus
	test/integrations/network/run.sh $(VITEST) run --config test/integrations/vitest.config.ts

test-systemd: install ## the shipped unit under a real systemd, in a container (Debian's, installed when root; needs root)
	@$(DEBIAN) /lib/systemd/systemd=systemd /usr/bin/systemd-nspawn=systemd-container /usr/bin/dbus-daemon=dbus
	$(VITEST) run --config test/systemd/vitest.config.ts

test-fleet: install ## the rules of a fleet over a real PostgreSQL with a standby, and a pooler (Debian's, installed when root)
	$(VITEST) run --config test/fleet/vitest.config.ts

test-ledger: install ## the ledger beside its model: 60,000 random steps for each of three seeds
	LEDGER_STEPS=60000 $(VITEST) run test/ledger/property.test.ts --testTimeout 3600000

demo-fleet: install ## PostgreSQL, three nodes and a balancer on loopback: ask, kill a node, ask again, count
	$(NODE) tools/fleet/demo.ts

test-console: install ## the console in Debian's Chromium, every page and action (installs it when root)
	@$(DEBIAN) /usr/bin/chromium=chromium
	$(VITEST) run --config test/console/browser/vitest.config.ts

clean: ## remove what the targets made (not node_modules)
	rm -rf var dist
