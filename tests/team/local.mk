# SPDX-License-Identifier: Apache-2.0
# Several processes on one PostgreSQL; and the tests of the store, the API, MLflow's API, the commands and a killed
# server on PostgreSQL, compared with the default store (check-postgresql).
team_tests = tests/team/together.py tests/team/pooled.py tests/team/rolling.py \
	tests/team/migrate.py tests/team/leases.py tests/team/exact.py tests/team/archive.py tests/team/silent.py \
	tests/team/outside.py tests/team/sign_in.py
EXTRA_DIST += $(team_tests) tests/team/flow.py tests/team/cluster.py tests/team/lib.py \
	tests/team/wire.py tests/team/clients.py tests/team/faults.py tests/team/load.py tests/team/swift.py
CHECK_EXTRA += $(team_tests)

if HAVE_CMOCKA
postgresql_programs = tests/store/store_test tests/store/query_test tests/store/gc_test
endif
postgresql_scripts = tests/api/hostile.py tests/api/transfer.py tests/api/journal.py tests/api/paths.py \
	tests/api/artifacts.py tests/api/downloads.py tests/store/lists.py tests/api/line.py tests/api/groups.py tests/api/objects.py \
	tests/api/alerts.py tests/api/formula.py tests/api/kept.py tests/api/moved.py tests/api/access.py tests/api/auth/grants.py tests/api/auth/shares.py tests/api/auth/authors.py tests/api/events.py tests/api/openapi.py \
	tests/store/archive.py tests/mlflow/routes.py tests/mlflow/client.py tests/cli/commands.py tests/cli/bring.py tests/cli/roundtrip.py \
	tests/cli/upkeep.py tests/fault/server_kill.py tests/fault/audit.py
check-postgresql: dptrack$(EXEEXT) tests/tracker/record$(EXEEXT) $(postgresql_programs)
	srcdir='$(abs_top_srcdir)' builddir='$(abs_top_builddir)' python3 $(srcdir)/tests/team/cluster.py \
		--beside $(postgresql_programs) $(postgresql_scripts)
	srcdir='$(abs_top_srcdir)' builddir='$(abs_top_builddir)' python3 $(srcdir)/tests/team/flow.py || test $$? = 77
.PHONY: check-postgresql
