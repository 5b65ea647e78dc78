# SPDX-License-Identifier: Apache-2.0
# Power cuts, killed servers, failing disks: 20 of each in make check; each file's head describes its long version.
fault_scripts = tests/fault/server_kill.py tests/fault/disk.py tests/fault/memory.py tests/fault/audit.py
TESTS += tests/fault/ranks.py
EXTRA_DIST += tests/fault/ranks.py
EXTRA_DIST += $(fault_scripts)
TESTS += $(fault_scripts)
cmocka_tests += tests/fault/power
tests_fault_power_SOURCES = tests/fault/power.c tests/fault/cutfs.c tests/fault/cutfs.h $(store_test_helper)
tests_fault_power_LDADD = $(store_test_libs)
CHECK_EXTRA += tests/fault/team.py
EXTRA_DIST += tests/fault/team.py
