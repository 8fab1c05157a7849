# The targets a person types. `make help` lists them.
.DEFAULT_GOAL := help
NODE := node_modules/.bin/node
VITEST := $(NODE) node_modules/vitest/vitest.mjs
N ?= 1000000
SEED ?= 1
DATASET ?= var/dataset-$(N)

.PHONY: help install demo serve check test clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-22s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: node_modules/.installed ## install what package-lock.json pins

node_modules/.installed: package.json package-lock.json
	npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	$(NODE) tools/glibc/install.ts
	@touch $@

demo: install ## build the sample index, serve it, ask real questions
	@$(NODE) tools/demo/demo.ts

serve: install ## go on from the demo: serve its index and account until Ctrl-C
	@$(NODE) tools/demo/serve.ts

check: install ## types, lint, format
	$(NODE) node_modules/typescript/bin/tsc --noEmit
	node_modules/.bin/biome check .

test: check ## everything: types, lint, format, all tests
	$(VITEST) run

clean: ## remove what the targets made (not node_modules)
	rm -rf var dist
