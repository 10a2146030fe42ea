# make demo | resnet18 | test | test-importers | test-peers | test-onnx | parity | samples | check |
# format | docs | bench | sanitize | fuzz | stress | stress-onnx | stress-trees | suites-trees | clean.
# Everything is installed into .venv, and large packages into .venv-tvm, .venv-tvm-legacy, .venv-onnx, .venv-numba,
# .venv-trees and .venv-scale; nothing needs root.
PYTHON ?= python3
VENV := .venv
VENV_TVM := .venv-tvm
VENV_LEGACY := .venv-tvm-legacy
VENV_ONNX := .venv-onnx
VENV_NUMBA := .venv-numba
VENV_TREES := .venv-trees
VENV_SCALE := .venv-scale
BIN := $(VENV)/bin
SOURCES := pyproject.toml setup.py tools/build_backend.py $(wildcard runtime/*.toml runtime/*.py importers/*/*.toml importers/*/*.py) $(shell find runtime/runtime runtime/native runtime/include packer templates importers/*/dso_packer_* -name '*.py' -o -name '*.pyi' -o -name '*.[chs]' -o -name '*.html' -o -name '*.css' -o -name '*.js')
C_WARNINGS := -std=c11 -O2 -pthread -Wall -Wextra -Wshadow -Wconversion -Wpedantic -Werror

# Tests run make and cmake, which would ask for the jobs of `make --jobs` and warn.
unexport MAKEFLAGS MFLAGS

# A third of the nodes that the analyzer visits by default, in half the time.
TIDY_FLAGS = -std=c11 -Iruntime/native -Iruntime/include \
	-isystem $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))') \
	-Xclang -analyzer-config -Xclang max-nodes=75000

C_FILES = $(shell find runtime/native runtime/include templates packer/operators importers -name '*.[ch]')

.PHONY: demo resnet18 test test-first test-second test-skipped test-tvm test-models test-onnx test-numba test-trees parity test-scale test-importers test-peers samples check format docs bench sanitize fuzz stress stress-onnx stress-trees suites-trees clean

# pip 25.1 knows dependency groups; older ones are replaced in the venv first.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade 'pip>=25.1'

# Each stamp is one set of packages. The project is installed as anyone would, not editable, so
# that what is tested is what is shipped. Where dso-packer is from before dso-runtime was a separate
# distribution, its files are removed first: an upgrade would remove those of dso-runtime with them.
$(VENV)/installed: $(BIN)/python $(SOURCES)
	$(BIN)/pip show --quiet dso-runtime 2>/dev/null || $(BIN)/pip uninstall -qq --yes dso-packer
	$(BIN)/pip install --quiet .
	touch $@

$(VENV)/%.group: $(VENV)/installed pyproject.toml
	$(BIN)/pip install --quiet --group $*
	touch $@

demo: $(VENV)/demo.group
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python examples/photo/demo.py

# ResNet-18 in one library, beside ONNX Runtime.
resnet18: $(VENV)/resnet18.group
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python examples/resnet18/demo.py

# The core, in two halves of about the same length at once, for two processors. Each lists what it
# skips for lack of a package or a tool.
FIRST_HALF := tests/fuzz tests/levels tests/native tests/operators tests/packer/inspect tests/packer/trust tests/runtime
test: $(VENV)/test.group
	make --no-print-directory --jobs=2 --output-sync=target TESTFLAGS='$(TESTFLAGS)' test-first test-second

# The importers, each with its packages in a separate environment.
test-importers: test-models test-numba test-trees

# Beside other programs: TVM, Dask, Ray, S3; and what the core skipped, such as the tests with a
# browser, emulators, other compilers and PyTorch.
test-peers: test-tvm test-scale test-skipped

test-first: $(VENV)/test.group
	mkdir -p build
	env -u CI $(BIN)/pytest -o cache_dir=build/pytest-first --skipped build/skipped-first $(FIRST_HALF) $(TESTFLAGS)

test-second: $(VENV)/test.group
	mkdir -p build
	env -u CI $(BIN)/pytest -o cache_dir=build/pytest-second --skipped build/skipped-second tests $(FIRST_HALF:%=--ignore=%) $(TESTFLAGS)

# What the halves skipped, and nothing else, after the packages that these tests need are installed.
# Where CI is set, a test whose tool is missing fails. check and samples use the environment, too.
MORE_GROUPS := torch opencl zig cuda wheel-tools
test-skipped: test-first test-second check samples
	$(BIN)/pip install --quiet $(MORE_GROUPS:%=--group %)
	$(BIN)/pytest @build/skipped-first @build/skipped-second $(TESTFLAGS)

# Beside real TVM, which is large: in an environment of its own, so that nothing of it is in ours.
$(VENV_TVM)/tvm.group: pyproject.toml
	$(PYTHON) -m venv $(VENV_TVM)
	$(VENV_TVM)/bin/pip install --quiet --upgrade 'pip>=25.1'
	$(VENV_TVM)/bin/pip install --quiet --group tvm
	touch $@

# TVM of 2024, which the wheel of bitblas contains; nothing else of that package is used.
$(VENV_LEGACY)/tvm-legacy.group: pyproject.toml
	$(PYTHON) -m venv $(VENV_LEGACY)
	$(VENV_LEGACY)/bin/pip install --quiet --upgrade 'pip>=25.1'
	$(VENV_LEGACY)/bin/pip install --quiet --group tvm-legacy
	$(VENV_LEGACY)/bin/pip install --quiet --no-deps bitblas==0.1.0.post1
	touch $@

test-tvm: $(VENV)/test.group $(VENV_TVM)/tvm.group $(VENV_LEGACY)/tvm-legacy.group
	$(BIN)/pytest tests/tvm/test_*.py $(TESTFLAGS)

# The importer of models: onnx and its packages are large, too. They are not in the environment of
# the other tests, so that these show that nothing else needs them.
$(VENV_ONNX)/onnx.group: pyproject.toml
	$(PYTHON) -m venv $(VENV_ONNX)
	$(VENV_ONNX)/bin/pip install --quiet --upgrade 'pip>=25.1'
	$(VENV_ONNX)/bin/pip install --quiet --group onnx
	touch $@

$(VENV_ONNX)/installed: $(VENV_ONNX)/onnx.group $(SOURCES)
	$(VENV_ONNX)/bin/pip install --quiet ./runtime . ./importers/onnx
	touch $@

test-models: $(VENV_ONNX)/installed
	$(VENV_ONNX)/bin/pytest importers/onnx/tests $(TESTFLAGS)

# The node tests of ONNX, all 1,678; what is in the file is not run again. COMPILER=clang-15 adds a
# column to the table of importers/onnx/tests/node_tests.json.
COMPILER ?= gcc
test-onnx: $(VENV_ONNX)/installed
	mkdir -p build
	$(VENV_ONNX)/bin/python -P importers/onnx/tests/node_tests.py --cc $(COMPILER) --json build/node_tests.$(COMPILER).json
	$(VENV_ONNX)/bin/python -P importers/onnx/tests/light_models.py

# Open extents: more than fifty architectures of transformers at 20 shapes each, decoders token by token, and
# random graphs, also of nested branches, loops and sequences.
GRAPHS ?= 1000
stress-onnx: $(VENV_ONNX)/installed
	$(VENV_ONNX)/bin/python -P importers/onnx/tests/all_architectures.py
	$(VENV_ONNX)/bin/python -P importers/onnx/tests/all_decoders.py
	$(VENV_ONNX)/bin/python importers/onnx/tests/random_graphs.py --count $(GRAPHS)
	$(VENV_ONNX)/bin/python importers/onnx/tests/random_flow.py --count $(GRAPHS)

# Functions that Numba compiles: Numba is large, and its releases want their own NumPy.
$(VENV_NUMBA)/numba.group: pyproject.toml
	$(PYTHON) -m venv $(VENV_NUMBA)
	$(VENV_NUMBA)/bin/pip install --quiet --upgrade 'pip>=25.1'
	$(VENV_NUMBA)/bin/pip install --quiet --group numba
	touch $@

$(VENV_NUMBA)/installed: $(VENV_NUMBA)/numba.group $(SOURCES)
	$(VENV_NUMBA)/bin/pip install --quiet ./runtime . ./importers/numba
	touch $@

# NUMBA=0.67.0 takes that release; NUMBA_TESTS="..." runs a part. Another release has its packages in
# an environment that finds the others in .venv-numba.
WITH_NUMBA := $(VENV_NUMBA)$(NUMBA:%=-%)
.venv-numba-%/installed: | $(VENV_NUMBA)/installed
	$(PYTHON) -m venv --without-pip $(@D)
	$(VENV_NUMBA)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > $(@D)/others.pth
	mv $(@D)/others.pth $(@D)/lib/python*/site-packages/
	$(VENV_NUMBA)/bin/pip --python $(@D)/bin/python install --quiet --ignore-installed numba==$*
	touch $@

NUMBA_TESTS ?= importers/numba/tests
test-numba: $(WITH_NUMBA)/installed
	$(WITH_NUMBA)/bin/python -P -m pytest $(NUMBA_TESTS) $(TESTFLAGS)

# Dask, Ray, and a server of S3: large, and they start processes that import everything there.
$(VENV_SCALE)/scale.group: pyproject.toml
	$(PYTHON) -m venv $(VENV_SCALE)
	$(VENV_SCALE)/bin/pip install --quiet --upgrade 'pip>=25.1'
	$(VENV_SCALE)/bin/pip install --quiet --group scale
	touch $@

$(VENV_SCALE)/installed: $(VENV_SCALE)/scale.group $(SOURCES)
	$(VENV_SCALE)/bin/pip install --quiet ./runtime . ./importers/onnx
	touch $@

test-scale: $(VENV_SCALE)/installed
	$(VENV_SCALE)/bin/pytest tests/scale $(TESTFLAGS)

# Forests: the training libraries are large, too; the tests make their models with them.
$(VENV_TREES)/trees.group: pyproject.toml
	$(PYTHON) -m venv $(VENV_TREES)
	$(VENV_TREES)/bin/pip install --quiet --upgrade 'pip>=25.1'
	$(VENV_TREES)/bin/pip install --quiet --group trees
	touch $@

$(VENV_TREES)/installed: $(VENV_TREES)/trees.group $(SOURCES)
	$(VENV_TREES)/bin/pip install --quiet ./runtime . ./importers/trees
	touch $@

test-trees: $(VENV_TREES)/installed
	$(VENV_TREES)/bin/python -P -m pytest importers/trees/tests $(TESTFLAGS)

# A million mutants of the tables of forests and steps, and 100,000 rows of each kind of model.
stress-trees: $(VENV_TREES)/installed
	PYTHONPATH=. $(VENV_TREES)/bin/python -P -m importers.trees.tests.stress
	ROWS=100000 $(VENV_TREES)/bin/python -P -m pytest importers/trees/tests/test_equal.py

# The models of the tests of skl2onnx and lleaves, which are downloaded: ten minutes.
suites-trees: $(VENV_TREES)/installed
	PYTHONPATH=. $(VENV_TREES)/bin/python -P -m importers.trees.tests.suites

# Numba's own tests, recorded and run without Numba: half an hour.
parity: $(VENV_NUMBA)/installed
	$(VENV_NUMBA)/bin/python -P importers/numba/tests/parity $(TESTFLAGS)

# Fixed parts of what make fuzz, make stress and make test-numba NUMBA=0.67.0 run whole, for CI.
samples: $(VENV)/test.group .venv-numba-0.67.0/installed
	$(VENV_NUMBA)-0.67.0/bin/python -P -m pytest importers/numba/tests/test_memory.py importers/numba/tests/test_releases.py
	$(BIN)/python tests/fuzz/run.py --sample
	$(BIN)/python tests/stress/mutants.py --count 10000 --seed 1

check: $(VENV)/check.group $(VENV)/test.group
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy examples/quickstart.py
	$(BIN)/python tools/prose.py
	$(BIN)/clang-format --dry-run --Werror $(C_FILES)
	$(CC) $(C_WARNINGS) -fsyntax-only -Iruntime/native -Iruntime/include -I$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))') $(shell find runtime/native -name '*.c')
	$(CC) $(C_WARNINGS) -fsyntax-only -Iruntime/include -x c $(wildcard templates/glue*.h)
	$(CC) $(C_WARNINGS) -fsyntax-only $(wildcard packer/operators/*.c)
	$(CC) $(C_WARNINGS) -fsyntax-only -Iruntime/include -Itemplates $(wildcard importers/numba/dso_packer_numba/support/*.c)
	$(CC) $(C_WARNINGS) -fsyntax-only -Iruntime/include -Ipacker/operators $(wildcard importers/trees/dso_packer_trees/support/*.c)
	find runtime/native -name '*.c' | xargs -I{} -P $$(nproc) $(BIN)/clang-tidy --quiet {} -- $(TIDY_FLAGS)

# The layout of all code, applied.
format: $(VENV)/check.group
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(C_FILES)

# The reference pages, docs/reference/*.md, generated from the code; tests/test_docs.py compares.
docs: $(VENV)/installed
	$(BIN)/python docs/generate.py

# The native core under ASan, UBSan, LeakSanitizer, valgrind and TSan: up to an hour, so apart from test.
sanitize: $(VENV)/test.group
	$(BIN)/python tests/sanitize/run.py

# libFuzzer on the native core, Hypothesis on the parsers: FOR seconds each, as many at once as
# there are cores; make fuzz FOR=3600 ONLY="elf_check bytecode" for an hour of these two.
FOR ?= 600
fuzz: $(VENV)/test.group
	$(BIN)/python tests/fuzz/run.py --seconds $(FOR) $(ONLY)

# What takes minutes: rows of tests/stress/run.py, all or ROWS="...".
stress: $(VENV)/test.group $(VENV_NUMBA)/installed
	$(BIN)/python tests/stress/run.py $(ROWS)

# make bench ONLY="call weights" LARGE=1 FIGURES=docs/images measures these alone, weights of 4 GiB
# too, and puts their pictures where the documents have them.
FIGURES ?= build
bench: $(VENV)/bench.group
	$(BIN)/pip install --quiet --no-deps ./importers/onnx
	mkdir -p build
	$(BIN)/python benchmarks/run.py $(ONLY:%=--only=%) $(LARGE:%=--large) --json build/bench.json
	$(BIN)/python benchmarks/figure.py build/bench.json --folder $(FIGURES)

clean:
	rm -rf $(VENV) $(VENV_TVM) $(VENV_LEGACY) $(VENV_ONNX) .venv-numba* $(VENV_TREES) $(VENV_SCALE) build dist *.egg-info runtime/build runtime/*.egg-info runtime/runtime/include runtime/runtime/lib importers/*/build importers/*/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis examples/*/out
	find . -name __pycache__ -prune -exec rm -rf {} +
	find . -name '*.so' -not -path './tests/data/*' -delete
