# SPDX-License-Identifier: Apache-2.0
# libwebstore: the only part that links SQLite, which web/store/db alone knows, as it does libpq, which is loaded when a store's
# place is an address. The SQL of schema/sql becomes tables that it includes.
noinst_LTLIBRARIES += libwebstore.la
# Changes of stores that exist: schema/sql/NNNN_*.sql and schema/sql/postgresql/NNNN_*.sql, from one version to the next.
store_sql = schema/sql/0020_grants.sql schema/sql/0021_person.sql schema/sql/0022_wandb.sql \
	schema/sql/0023_audit.sql schema/sql/0024_share.sql schema/sql/0025_editions.sql schema/sql/0026_retention.sql \
	schema/sql/0027_artifact_files.sql
store_pg_sql = schema/sql/postgresql/0020_grants.sql schema/sql/postgresql/0021_person.sql \
	schema/sql/postgresql/0022_wandb.sql schema/sql/postgresql/0023_audit.sql schema/sql/postgresql/0024_share.sql \
	schema/sql/postgresql/0025_editions.sql schema/sql/postgresql/0026_retention.sql \
	schema/sql/postgresql/0027_artifact_files.sql
store_scripts = schema/sql/sqlite.sql schema/sql/open_new.sql schema/sql/open_writer.sql schema/sql/open_reader.sql schema/sql/open_backup.sql \
	schema/sql/open_alone.sql
EXTRA_DIST += $(store_sql) $(store_pg_sql) $(store_scripts) schema/sql/postgresql.sql schema/sql/queries.sql schema/gen/sql.awk schema/gen/tables.awk

libwebstore_la_SOURCES = \
	web/store/write/apply.c web/store/write/apply.h \
	web/store/points/archive.c web/store/points/archive.h \
	web/store/write/change.c web/store/write/change.h web/store/write/changes.def \
	web/store/write/change_journal.c \
	web/store/write/change_run.c \
	web/store/read/export_order.c web/store/read/export_order.h \
	web/store/read/run_records.c web/store/read/run_records.h \
	web/store/files/artifacts.c web/store/files/artifacts.h \
	web/store/files/artifact_change.c web/store/files/changes.def \
	web/store/files/disk.c \
	web/store/files/orphan_blobs.c \
	web/store/files/objects.c web/store/files/objects.h \
	web/store/files/object_put.c web/store/files/object_read.c \
	web/store/maintenance/backup.c \
	web/store/read/chart.c \
	web/store/maintenance/check.c \
	web/store/points/chunk.c web/store/points/chunk.h \
	web/store/points/chunks.c web/store/points/chunks.h \
	web/store/read/cells.c \
	web/store/read/metric_select.c web/store/read/read_inside.h \
	web/store/read/columns.c web/store/read/columns.h \
	web/store/db/batch.c \
	web/store/db/blob_pg.c \
	web/store/db/sqlite_file.c web/store/db/migrations.c \
	web/store/db/db.c web/store/db/db.h web/store/db/db_open.c web/store/db/engine.h \
	web/store/db/db_pg.c web/store/db/pg_inside.h web/store/db/pg_link.c web/store/db/pg_writer.c \
	web/store/db/db_sqlite.c web/store/db/sqlite_inside.h \
	web/store/db/tables.c \
	web/store/read/detail.c \
	web/store/mlflow/experiments.c web/store/mlflow/experiments.h \
	web/store/files/files.c web/store/files/files.h \
	web/store/filter/lexer.c web/store/filter/lexer.h \
	web/store/filter/filter.c web/store/filter/filter.h \
	web/store/filter/filter_names.c web/store/filter/filter_inside.h \
	web/store/filter/filter_parse.c \
	web/store/files/folder_files.c \
	web/store/points/fold.c web/store/points/fold.h \
	web/store/points/fold_rows.c \
	web/store/follow/tb_hparams.c \
	web/store/follow/follow.c web/store/follow/follow.h \
	web/store/follow/follow_inside.h web/store/follow/follow_files.c web/store/follow/follow_sources.c web/store/follow/follow_sweep.c \
	web/store/follow/follow_read.c web/store/follow/origin.c web/store/follow/origin.h \
	web/store/read/history.c web/store/read/history.h \
	web/store/maintenance/gc.c web/store/maintenance/maintenance.h \
	web/store/maintenance/retention.c web/store/maintenance/retention.h web/store/maintenance/retention_plan.c \
	web/store/maintenance/changes.def web/store/maintenance/keeper.c \
	web/store/base/grants.c web/store/base/grants.h web/store/db/permitted.c \
	web/store/write/ingest.c web/store/write/ingest.h \
	web/store/base/parts.h web/store/base/etag.h \
	web/store/write/intake.c web/store/write/intake.h \
	web/store/write/intake_item.c \
	web/store/mlflow/model_links.c \
	web/store/archive/archiver.c web/store/archive/archiver.h \
	web/store/archive/changes.def \
	web/store/archive/pack_run.c \
	web/store/alert/alert.c web/store/alert/alert.h \
	web/store/alert/changes.def \
	web/store/alert/alert_watch.c \
	web/store/saved_view/saved_view.c web/store/saved_view/saved_view.h \
	web/store/saved_view/changes.def \
	web/store/live.c \
	web/store/locate.c \
	web/store/base/map.c web/store/base/map.h \
	web/store/base/beneath.c web/store/base/beneath.h \
	web/store/move/move.c web/store/move/move.h web/store/move/move_inside.h \
	web/store/move/move_files.c web/store/move/walk.c \
	web/store/mlflow/logged_models.c web/store/mlflow/logged_models.h \
	web/store/points/order.c web/store/points/order.h \
	web/store/points/outline.c web/store/points/outline.h \
	web/store/wandb/artifact_versions.c web/store/wandb/artifact_versions.h web/store/wandb/changes.def \
	web/store/read/keysets.c web/store/read/keysets.h \
	web/store/read/page_token.c web/store/read/page_token.h \
	web/store/read/run_params.c \
	web/store/read/series_select.c \
	web/store/read/points.c web/store/read/points.h \
	web/store/write/change_purge.c \
	web/store/read/query.c web/store/read/query.h \
	web/store/write/lease.c web/store/write/lease.h \
	web/store/write/queue.c web/store/write/queue.h \
	web/store/db/readers.c \
	web/store/points/scan.c web/store/points/scan.h \
	web/store/read/run_search.c \
	web/store/registry/registered.c web/store/registry/registered.h \
	web/store/registry/registry.c web/store/registry/changes.def \
	web/store/write/segment.c web/store/write/segment.h \
	web/store/state/state.c web/store/state/state.h \
	web/store/state/state_inside.h web/store/state/state_run.c web/store/state/state_series.c web/store/state/state_sets.c \
	web/store/store.c web/store/store.h \
	web/store/points/series_summary.c web/store/points/series_summary.h \
	web/store/audit/audit.c web/store/audit/audit.h \
	web/store/auth/token.c web/store/auth/person.c web/store/auth/person.h web/store/auth/chosen_token.c web/store/auth/token.h \
	web/store/auth/token_change.c web/store/auth/share.c web/store/auth/share.h web/store/auth/changes.def \
	web/store/mlflow/mlflow.c web/store/mlflow/mlflow.h web/store/mlflow/changes.def \
	web/store/mlflow/mlflow_inside.h \
	web/store/mlflow/mlflow_model.c \
	web/store/mlflow/mlflow_run.c \
	web/store/follow/folder_tree.c web/store/follow/folder_tree.h \
	web/store/base/background_job.c web/store/base/background_job.h \
	web/store/write/waiter.c \
	web/store/write/committer.c web/store/write/committer.h \
	web/store/write/group_commit.c web/store/write/group_commit.h \
	web/store/write/folding.c \
	web/store/write/transaction.c web/store/write/transaction.h
libwebstore_la_CPPFLAGS = $(AM_CPPFLAGS) $(SQLITE_CFLAGS) $(LIBPQ_CFLAGS)
libwebstore_la_LIBADD = libinsight.la libmem.la libobject.la libtracker.la libtrackbase.la $(SQLITE_LIBS) -lm

store_defs = web/store/db/queries.def web/store/db/queries_pg.def web/store/db/columns.def web/store/db/scripts.def web/store/db/migrations.def \
	web/store/db/tables.sql web/store/db/tables.def \
	web/store/db/schema_pg.def web/store/db/migrations_pg.def
$(libwebstore_la_OBJECTS): $(store_defs)
CLEANFILES += $(store_defs)

# Queries that follow from the tables.
web/store/db/tables.sql: schema/sql/postgresql.sql schema/gen/tables.awk
	$(AM_V_GEN)$(MKDIR_P) web/store/db && $(AWK) -v what=queries -f $(srcdir)/schema/gen/tables.awk \
		$(srcdir)/schema/sql/postgresql.sql >$@.tmp && mv $@.tmp $@

web/store/db/tables.def: schema/sql/postgresql.sql schema/gen/tables.awk
	$(AM_V_GEN)$(MKDIR_P) web/store/db && $(AWK) -v what=list -f $(srcdir)/schema/gen/tables.awk \
		$(srcdir)/schema/sql/postgresql.sql >$@.tmp && mv $@.tmp $@

web/store/db/queries.def: schema/sql/queries.sql web/store/db/tables.sql schema/gen/sql.awk
	$(AM_V_GEN)$(AWK) -v what=queries -f $(srcdir)/schema/gen/sql.awk \
		$(srcdir)/schema/sql/queries.sql web/store/db/tables.sql >$@.tmp && mv $@.tmp $@

web/store/db/queries_pg.def: schema/sql/queries.sql web/store/db/tables.sql schema/gen/sql.awk
	$(AM_V_GEN)$(AWK) -v what=pg -f $(srcdir)/schema/gen/sql.awk \
		$(srcdir)/schema/sql/queries.sql web/store/db/tables.sql >$@.tmp && mv $@.tmp $@

web/store/db/schema_pg.def: schema/sql/postgresql.sql schema/gen/sql.awk
	$(AM_V_GEN)$(MKDIR_P) web/store/db && $(AWK) -v what=text -f $(srcdir)/schema/gen/sql.awk \
		$(srcdir)/schema/sql/postgresql.sql >$@.tmp && mv $@.tmp $@

web/store/db/columns.def: schema/sql/queries.sql web/store/db/tables.sql schema/gen/sql.awk
	$(AM_V_GEN)$(AWK) -v what=columns -f $(srcdir)/schema/gen/sql.awk \
		$(srcdir)/schema/sql/queries.sql web/store/db/tables.sql >$@.tmp && mv $@.tmp $@

web/store/db/migrations_pg.def: $(store_pg_sql) schema/gen/sql.awk
	$(AM_V_GEN)$(MKDIR_P) web/store/db && $(AWK) -v what=scripts -f $(srcdir)/schema/gen/sql.awk \
		$(addprefix $(srcdir)/,$(store_pg_sql)) </dev/null >$@.tmp && mv $@.tmp $@

web/store/db/migrations.def: $(store_sql) schema/gen/sql.awk
	$(AM_V_GEN)$(MKDIR_P) web/store/db && $(AWK) -v what=scripts -f $(srcdir)/schema/gen/sql.awk \
		$(addprefix $(srcdir)/,$(store_sql)) </dev/null >$@.tmp && mv $@.tmp $@

web/store/db/scripts.def: $(store_scripts) schema/gen/sql.awk
	$(AM_V_GEN)$(MKDIR_P) web/store/db && $(AWK) -v what=scripts -f $(srcdir)/schema/gen/sql.awk \
		$(addprefix $(srcdir)/,$(store_scripts)) >$@.tmp && mv $@.tmp $@
