# libwebstore: the only part that links SQLite. The SQL of schema/sql becomes two tables that db.c includes.
noinst_LTLIBRARIES += libwebstore.la
store_sql = schema/sql/0001_start.sql schema/sql/0002_token.sql schema/sql/0003_mlflow.sql \
	schema/sql/0004_gone.sql schema/sql/0005_arrival.sql schema/sql/0006_parts.sql
store_scripts = schema/sql/open_writer.sql schema/sql/open_reader.sql schema/sql/open_backup.sql
EXTRA_DIST += $(store_sql) $(store_scripts) schema/sql/queries.sql schema/gen/sql.awk

libwebstore_la_SOURCES = \
	web/store/apply.c web/store/apply.h \
	web/store/apply_journal.c web/store/apply_journal.h \
	web/store/arrival.c web/store/arrival.h \
	web/store/artifacts.c web/store/artifacts.h \
	web/store/backup.c \
	web/store/chart.c \
	web/store/check.c web/store/check.h \
	web/store/chunk.c web/store/chunk.h \
	web/store/columns.c web/store/columns.h \
	web/store/db.c web/store/db.h \
	web/store/detail.c web/store/detail.h \
	web/store/experiments.c web/store/experiments.h \
	web/store/files.c web/store/files.h \
	web/store/filter.c web/store/filter.h \
	web/store/filter_mlflow.c web/store/filter_inside.h \
	web/store/filter_parse.c \
	web/store/fold.c web/store/fold.h \
	web/store/follow.c web/store/follow.h \
	web/store/follow_inside.h web/store/follow_files.c web/store/follow_read.c \
	web/store/history.c web/store/history.h \
	web/store/gc.c web/store/upkeep.h \
	web/store/ingest.c web/store/ingest.h \
	web/store/inside.h \
	web/store/intake.c web/store/intake.h \
	web/store/links.c \
	web/store/list.h \
	web/store/locate.c \
	web/store/map.c web/store/map.h \
	web/store/models.c web/store/models.h \
	web/store/order.c web/store/order.h \
	web/store/origin.c web/store/origin.h \
	web/store/outline.c web/store/outline.h \
	web/store/pack.c web/store/pack.h \
	web/store/page.c web/store/page.h \
	web/store/pick.c web/store/pick.h \
	web/store/points.c web/store/points.h \
	web/store/purge.c web/store/purge.h \
	web/store/query.c web/store/query.h \
	web/store/queue.c web/store/queue.h \
	web/store/readers.c web/store/readers.h \
	web/store/repeat.c web/store/repeat.h \
	web/store/scan.c web/store/scan.h \
	web/store/search.c \
	web/store/segment.c web/store/segment.h \
	web/store/spike.c web/store/spike.h \
	web/store/state.c web/store/state.h \
	web/store/state_inside.h web/store/state_run.c web/store/state_series.c \
	web/store/store.c web/store/store.h \
	web/store/sum.c web/store/sum.h \
	web/store/tail.c web/store/tail.h \
	web/store/throttle.c web/store/throttle.h \
	web/store/token.c web/store/token.h \
	web/store/tracking.c web/store/tracking.h \
	web/store/tracking_apply.h \
	web/store/tracking_experiment.c \
	web/store/tracking_inputs.c \
	web/store/tracking_model.c \
	web/store/tracking_run.c \
	web/store/tree.c web/store/tree.h \
	web/store/work.c web/store/work.h \
	web/store/waiter.c web/store/waiter.h \
	web/store/watchers.c web/store/watchers.h \
	web/store/writer.c web/store/writer.h
libwebstore_la_CPPFLAGS = $(AM_CPPFLAGS) $(SQLITE_CFLAGS)
libwebstore_la_LIBADD = libtracker.la libtrackbase.la $(SQLITE_LIBS) -lm

$(libwebstore_la_OBJECTS): web/store/queries.def web/store/scripts.def
CLEANFILES += web/store/queries.def web/store/scripts.def

web/store/queries.def: schema/sql/queries.sql schema/gen/sql.awk
	$(AM_V_GEN)$(MKDIR_P) web/store && $(AWK) -v what=queries -f $(srcdir)/schema/gen/sql.awk \
		$(srcdir)/schema/sql/queries.sql >$@.tmp && mv $@.tmp $@

web/store/scripts.def: $(store_sql) $(store_scripts) schema/gen/sql.awk
	$(AM_V_GEN)$(MKDIR_P) web/store && $(AWK) -v what=scripts -f $(srcdir)/schema/gen/sql.awk \
		$(addprefix $(srcdir)/,$(store_sql) $(store_scripts)) >$@.tmp && mv $@.tmp $@
