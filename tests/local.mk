# SPDX-License-Identifier: Apache-2.0
# TESTS run in `make check`: fast and without network. CHECK_EXTRA run in ./check: browser, real readers, packages
# from PyPI and npm. CHECK_LONG run in ./check --long, where tests that can test more do so (DPT_TEST_FULL=1). Exit 77
# means skipped, with the reason on the last line.

# The leak checker scans thread-local storage of loaded modules' threads (the cpu backend's) and crashes on it. Some
# tests fork with threads, which the thread sanitizer would refuse.
AM_TESTS_ENVIRONMENT = ASAN_OPTIONS="$${ASAN_OPTIONS:-intercept_tls_get_addr=0}"; export ASAN_OPTIONS; \
	TSAN_OPTIONS="$${TSAN_OPTIONS:-die_after_fork=0}"; export TSAN_OPTIONS; \
	srcdir='$(abs_top_srcdir)'; builddir='$(abs_top_builddir)'; export srcdir builddir;
TEST_EXTENSIONS = .sh .py
limit_test = python3 '$(abs_top_srcdir)/tests/limit.py'
LOG_COMPILER = $(limit_test)
SH_LOG_COMPILER = $(limit_test) $(SHELL)
PY_LOG_COMPILER = $(limit_test) python3

dist_check_SCRIPTS =

# A C test is one word in cmocka_tests: tests/ROOM/NAME is built from tests/ROOM/NAME.c and linked with LDADD, unless
# its fragment says otherwise.
cmocka_tests =
AM_CPPFLAGS += $(CMOCKA_CFLAGS)
LDADD = libtrainer.la libtrackbase.la $(CMOCKA_LIBS)
if HAVE_CMOCKA
check_PROGRAMS += $(cmocka_tests)
TESTS += $(cmocka_tests)
endif

# Tests start in this order: kernels, the fake device and complete trainings, which take longest, first, so that all
# cores are busy until the end. The page's waits most: ./check spreads it among the others.
include tests/ops/local.mk
include tests/backends/local.mk
include tests/gpu/local.mk
include tests/docs/local.mk
include tests/advise/local.mk
include tests/train/local.mk
include tests/nodes/local.mk
include tests/tracker/local.mk
include tests/sweep/local.mk
include tests/insight/local.mk
include tests/python/local.mk
include tests/release/local.mk
include tests/whole/local.mk
include tests/fault/local.mk
include tests/api/local.mk
include tests/cli/local.mk
include tests/mlflow/local.mk
include tests/wandb/local.mk
include tests/web/local.mk
include tests/store/local.mk
include tests/team/local.mk
include tests/fuzz/local.mk
include tests/graph/local.mk
include tests/comm/local.mk
include tests/data/local.mk
include tests/weights/local.mk
include tests/config/local.mk
include tests/study/local.mk
include tests/program/local.mk
include tests/state/local.mk
include tests/launch/local.mk
include tests/fakes/cuda/local.mk
include tests/lint/local.mk
include tests/bench/local.mk
include tests/fresh/local.mk

# The tests that ./check runs in each build; it explains why. From a tarball: the rules that check the tree, and one
# program of each kind that reads files of it.
dist_programs = tests/tracker/base_test tests/store/chunk_test tests/graph/dump_test tests/weights/safetensors_test
dist_tests = $(dist_programs) tests/tracker/installed.sh tests/tracker/manual.sh tests/store/migrate.py \
	tests/api/openapi.py tests/cli/upkeep.py tests/data/tokens.py tests/train/refusals.py tests/train/launcher.py \
	tests/whole/foreign.py tests/options_off.sh $(filter-out tests/lint/planted.py,$(lint_tests))
dist_built = $(dist_programs) tests/data/deliver tests/store/next tests/dptrain
# Under the sanitizers ./check leaves out what runs no code of the build, networks on the fake device (tests/gpu/ops.sh
# reaches its kernels), and whole trainings and plans that reach what shorter tests reach: tests/comm, tests/graph, tests/backends
# and, of several ranks, offload.py, bits.py, pipelines.py, resume.py. `make check` in that build runs all.
unsanitized_tests = $(lint_tests) $(python_tests) $(filter-out tests/gpu/ops.sh,$(gpu_tests)) tests/gpu/calls_test tests/gpu/conformance_fake \
	tests/gpu/judge_test tests/fakes/cuda/nccl_test tests/tracker/manual.sh tests/web/pure.sh $(docs_tests) \
	tests/release/wheel.py tests/cli/agents.py tests/cli/agents_sdk.py tests/advise/plan.py tests/backends/allocations \
	tests/backends/allocations.py tests/train/ranks.py tests/train/stops.py tests/train/memory.py tests/train/averages.py \
	tests/train/launcher.py tests/train/determinism.py tests/train/levels/casts.py tests/train/accumulation.py tests/train/resnet18.py tests/train/reference.py \
	tests/train/strategies/same.py tests/train/strategies/layouts.py tests/train/strategies/bytes.py \
	tests/data/recipes/recipes.py tests/data/recipes/train_crop.py tests/nodes/sent.py tests/nodes/meetings.py \
	tests/insight/best.py tests/insight/profile.py tests/insight/spike.py tests/insight/watch.py tests/sweep/sweeps.py \
	tests/ops/own_conv.sh tests/train/optimizers.py tests/train/strategies/shares.py tests/nodes/shared_training.py \
	tests/nodes/bandwidth.py tests/nodes/asked_alone.py tests/fault/ranks.py tests/insight/doctor.py tests/insight/find.py
extra_tests = $(filter-out $(page_tests),$(CHECK_EXTRA))
sanitized_tests = $(filter-out $(unsanitized_tests),$(TESTS))
# ./check --all runs these under the sanitizers alone: their results do not depend on the optimization, as those of
# kernels and trainings do, and need neither page nor GPU.
repeated_tests = tests/gpu/ops.sh $(filter $(addprefix tests/,$(addsuffix /%,advise api cli config data fuzz insight mlflow wandb \
	program state store sweep tracker weights)),$(sanitized_tests))
optimized_tests = $(filter-out $(repeated_tests),$(TESTS))
# ./check guards the invariants of ARCHITECTURE.md within ten minutes on two cores. Left to --all: packages of other
# projects and of a release, tutorial and site, tasks, reports and looks of the page, whole nets on the fake device, teams on
# PostgreSQL, and of trainings and servers what takes longest and reaches what shorter tests reach.
thorough_tests = $(filter tests/release/% tests/fresh/% tests/team/% tests/data/recipes/% tests/web/tasks/% tests/web/handling/% tests/web/design/% \
	tests/web/saved_view/% tests/tracker/object_%,$(TESTS) $(CHECK_EXTRA)) tests/tracker/tensorboard_reader.py tests/mlflow/client.py \
	tests/wandb/basic.py tests/wandb/flows.py tests/wandb/reading.py \
	tests/cli/agents_sdk.py tests/data/sets/peers.py tests/data/texts/hostile_tokenizers.py tests/python/install.py tests/python/interpreters.py tests/python/pure.py tests/python/typed.py \
	tests/docs/tutorial.py tests/docs/site.py tests/whole/deploy.py tests/study/smoke.py tests/lint/planted.py \
	tests/web/reading.sh tests/web/told.sh tests/web/away.sh tests/api/limits/worst.py \
	tests/gpu/ops.sh tests/gpu/whole.py tests/gpu/ranks.py tests/gpu/products.py tests/gpu/allocations.py tests/gpu/blame.py \
	tests/gpu/kept.py tests/gpu/wheel_libraries.py tests/gpu/judge_test tests/backends/allocations.py tests/ops/own_conv.sh \
	tests/nodes/sent.py tests/nodes/shared_training.py tests/nodes/shared_cache.py tests/nodes/asked_alone.py tests/fault/ranks.py \
	tests/train/strategies/layouts.py tests/train/levels/casts.py tests/train/launcher.py tests/train/stops.py \
	tests/advise/plan.py tests/insight/profile.py tests/insight/perfetto.py tests/sweep/sweeps.py
print-tests:
	@echo $(filter-out $($(WITHOUT)),$($(NAMES)))
.PHONY: print-tests

# tests/limit.py adds the time of each test.
CLEANFILES += tests/seconds

# Only the server, the store and the commands: run by tests/sanitizers.sh. The programs, which wait least, first.
# Without those that need dptrain or the library in Python.
if HAVE_CMOCKA
web_programs = $(store_tests) $(api_test_programs) tests/fault/power
endif
web_tests = $(web_programs) $(api_tests) $(filter-out tests/cli/completion.py tests/cli/agents.py tests/cli/agents_sdk.py,$(cli_tests)) \
	$(fault_scripts) tests/mlflow/routes.py
web_test_programs = dptrack$(EXEEXT) tests/tracker/record$(EXEEXT) $(web_programs)
check-web: web-programs
	$(MAKE) $(AM_MAKEFLAGS) check-TESTS check_PROGRAMS= TESTS='$(web_tests)'
web-programs: $(web_test_programs)
.PHONY: check-web web-programs
EXTRA_DIST += quickstart tests/built_modules.h tests/limit.py tests/ports.py tests/serving.py tests/strace.py tests/certificate.py tests/setup.sh tests/options_off.sh tests/sanitizers.sh \
	LICENSE README.md ARCHITECTURE.md CONTRIBUTING.md STYLE.md NEWS.md SECURITY.md .clang-format .editorconfig

# Not in EXTRA_DIST: make would take the file's name for the target and run every test before it makes a tarball.
DIST_HOOKS += dist-check-script
dist-check-script:
	cp -p $(srcdir)/check $(distdir)/check
