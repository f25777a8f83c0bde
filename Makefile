# Everything sets itself up: a virtual environment in .venv, the dependencies, the library. Needs python3 and g++.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LIBRARY := picasso_tf/_picasso.so
SOURCES := $(shell find picasso_tf/cc -name '*.cc' -o -name '*.h' -o -name '*.lds')
KERNEL_TESTS := $(patsubst picasso_tf/cc/kernels/%.cc,build/tests/%,$(wildcard picasso_tf/cc/kernels/*_test.cc))
TENSORFLOW = $(shell $(PYTHON) -c "exec(open('picasso_tf/version.py').read()); print(TENSORFLOW_REQUIREMENT)")
export TF_CPP_MIN_LOG_LEVEL ?= 2

.PHONY: help demo test test-python test-kernels test-tsan lint fuzz equivalence bench bench-peers bench-zoo bench-wide bench-xla bench-latency bazel gpu-harness clean

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(VENV)/ready: setup.py pyproject.toml picasso_tf/version.py
	@$(PYTHON) -c "import venv, ensurepip" 2>/dev/null || { echo "Python's venv module is missing: run \`sudo apt-get install python3-venv\`."; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check setuptools wheel "$(TENSORFLOW)"
	$(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation --editable ".[test,example,lint]"
	touch $@

$(LIBRARY): $(SOURCES) $(VENV)/ready
	$(BIN)/python setup.py --quiet build_ext --inplace
	touch $@

demo: $(LIBRARY)  ## train a model on MovieLens, stock and with the plugin
	$(BIN)/python -m examples.demo $(ARGS)

test: test-kernels test-python  ## all tests

test-python: $(LIBRARY)  ## the Python tests; ARGS="tests/ir -k text" narrows them
	$(BIN)/python -m pytest $(or $(ARGS),tests)

build/tests/%: picasso_tf/cc/kernels/%.cc $(SOURCES)
	mkdir -p build/tests
	$(or $(CXX),g++) -std=c++17 -O1 -g -ffp-contract=off -fsanitize=address,undefined -fno-sanitize-recover=all -I. $< -o $@ -lpthread

test-kernels: $(KERNEL_TESTS)  ## the C++ kernel tests, under the address and undefined behaviour sanitizers
	@for test in $(KERNEL_TESTS); do echo $$test; $$test || exit 1; done

test-tsan:  ## the C++ kernel tests under the thread sanitizer
	mkdir -p build/tests
	for test in picasso_tf/cc/kernels/*_test.cc; do \
	  $(or $(CXX),g++) -std=c++17 -O1 -g -ffp-contract=off -fsanitize=thread -I. $$test -o build/tests/tsan -lpthread && build/tests/tsan || exit 1; \
	done

lint: $(VENV)/ready  ## formatting, lint rules and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy graph_passes picasso_tf

bench: $(LIBRARY)  ## benchmarks but the long ones, FBGEMM where its environment exists; ARGS="--quick" for a short run
	for name in forward embedding_step one_table criteo_step multi_hot first_step pass_time; do $(BIN)/python -m benchmarks.$$name $(ARGS) || exit 1; done

.venv-peers/ready: benchmarks/requirements-peers.txt
	test -x .venv-peers/bin/python || $(PYTHON) -m venv .venv-peers
	.venv-peers/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

bench-peers: $(LIBRARY) .venv-peers/ready  ## lookups and updates against FBGEMM (5 GB: its torch comes with CUDA)
	for name in forward pooled embedding_step; do $(BIN)/python -m benchmarks.$$name $(ARGS) || exit 1; done

bench-zoo: $(LIBRARY)  ## train steps of many models: hours; goes on where it was; ARGS="--models dlrm" narrows it
	$(BIN)/python -m benchmarks.zoo $(ARGS)

bench-wide: $(LIBRARY)  ## a train step of a thousand fields: half an hour, 12 GB of memory
	$(BIN)/python -m benchmarks.wide_model $(ARGS)

bench-xla: $(LIBRARY)  ## steps that XLA compiles: a quarter of an hour
	$(BIN)/python -m benchmarks.xla_step $(ARGS)

bench-latency: $(LIBRARY)  ## inference of a few models, batches of 1, 16 and 256: a quarter of an hour
	$(BIN)/python -m benchmarks.latency $(ARGS)

fuzz: $(LIBRARY)  ## many random models, stock against the plugin; MODELS and SEED choose
	PICASSO_FUZZ_MODELS=$(or $(MODELS),500) PICASSO_FUZZ_SEED=$(or $(SEED),1000) $(BIN)/python -m pytest tests/fuzz --timeout 0

equivalence: $(LIBRARY)  ## every optimizer through every front end, stock against the plugin (about 10 minutes)
	PICASSO_FULL_MATRIX=1 $(BIN)/python -m pytest tests/equivalence --timeout 0

NVCC = nvcc -x cu -std=c++17 -O3 --expt-relaxed-constexpr --fmad=false -Xcompiler -ffp-contract=off $(NVCC_FLAGS) -cudart static -I.

gpu-harness:  ## build the harnesses of the GPU kernels; they need no TensorFlow
	mkdir -p build
	for name in packed_lookup packed_update pooled_lookup; do \
	  $(NVCC) benchmarks/gpu/$${name}_harness.cu picasso_tf/cc/kernels/$${name}_gpu.cu.cc -o build/$${name}_harness || exit 1; \
	done

BAZEL_FLAGS ?= $(if $(wildcard /usr/share/bazel/rules/java),--config=debian)

bazel: $(VENV)/ready  ## build the library and test its kernels with Bazel
	@command -v bazel >/dev/null || { echo "Bazel is missing: run \`sudo apt-get install bazel-bootstrap bazel-rules-java bazel-rules-proto bazel-skylib bazel-platforms\`."; exit 1; }
	bazel build $(BAZEL_FLAGS) //:_picasso.so
	bazel test $(BAZEL_FLAGS) //:packed_lookup_test
	@$(BIN)/python -c "import tensorflow as tf; ops = [name for name in dir(tf.load_op_library('build/bazel-bin/_picasso.so')) if name.startswith('Picasso_')]; print('ops in the library that Bazel built:', *ops); assert ops"

clean:  ## remove what was built, but not the virtual environment
	rm -rf build bazel-out dist *.egg-info $(LIBRARY) .pytest_cache .mypy_cache .ruff_cache .hypothesis picasso_dumps
