include web/store/local.mk
include web/ui/local.mk

# libwebapi: the handlers. libwebserver: HTTP around them. libwebcli: the commands.
noinst_LTLIBRARIES += libwebapi.la libwebserver.la libwebcli.la
EXTRA_DIST += web/assets/stub.html
libwebapi_la_SOURCES = \
	web/api/api.c web/api/api.h \
	web/api/blob.c web/api/blob.h \
	web/api/call.c web/api/call.h \
	web/api/double.c web/api/double.h \
	web/api/js.c web/api/js.h \
	web/api/journal_pace.c web/api/journal_pace.h \
	web/api/json.c web/api/json.h \
	web/api/session.c web/api/session.h \
	web/api/handlers.h \
	web/api/native/artifacts.c \
	web/api/native/changes.c \
	web/api/native/compare.c \
	web/api/native/experiments.c \
	web/api/native/export.c web/api/native/export.h \
	web/api/native/export_events.c \
	web/api/native/export_runs.c \
	web/api/native/export_series.c \
	web/api/native/findings.c web/api/native/findings.h \
	web/api/native/insight/diagnosis.c \
	web/api/native/insight/overfit.c web/api/native/insight/overfit.h \
	web/api/native/insight/timing.c web/api/native/insight/timing.h \
	web/api/native/insight/trace.c \
	web/api/native/insight/why.c web/api/native/insight/why.h \
	web/api/native/insight/why_read.c web/api/native/insight/why_read.h \
	web/api/native/insight/why_text.c \
	web/api/native/journal.c web/api/native/spoken.c \
	web/api/native/kept/alerts.c web/api/native/kept/kept.c \
	web/api/native/login.c \
	web/api/native/meta.c \
	web/api/native/metrics.c \
	web/api/native/page.c \
	web/api/native/request.c web/api/native/request.h \
	web/api/native/run_json.c web/api/native/run_json.h \
	web/api/native/runs.c \
	web/api/native/formula/derived.c web/api/native/formula/derived.h \
	web/api/native/formula/formula.c web/api/native/formula/formula.h \
	web/api/native/groups/groups.c web/api/native/groups/groups.h \
	web/api/native/groups/runs_group.c web/api/native/groups/runs_group.h \
	web/api/native/series.c \
	web/api/native/groups/series_group.c web/api/native/groups/series_group.h \
	web/api/native/series_line.c web/api/native/series_line.h \
	web/api/native/tokens.c \
	web/api/native/upkeep.c \
	web/api/mlflow/mlflow.c \
	web/api/mlflow/mlflow_artifacts.c \
	web/api/mlflow/mlflow_experiments.c \
	web/api/mlflow/mlflow_inputs.c \
	web/api/mlflow/mlflow_metrics.c \
	web/api/mlflow/mlflow_models.c \
	web/api/mlflow/mlflow_names.c \
	web/api/mlflow/mlflow_registry.c \
	web/api/mlflow/mlflow_registry_read.c \
	web/api/mlflow/mlflow_registry_rules.c \
	web/api/mlflow/mlflow_request.c \
	web/api/mlflow/mlflow_run_json.c \
	web/api/mlflow/mlflow_runs.c \
	web/api/mlflow/mlflow_search.c \
	web/api/mlflow/mlflow_sources.c \
	web/api/mlflow/mlflow_versions.c \
	web/api/mlflow/mlflow.h
libwebapi_la_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
libwebapi_la_LIBADD = libwebstore.la libinsight.la $(JANSSON_LIBS)

libwebserver_la_SOURCES = \
	web/assets/asset.c web/assets/asset.h \
	web/server/access.c web/server/access.h \
	web/server/confine.c web/server/confine.h \
	web/server/conns.c web/server/conns.h \
	web/server/exchange.c web/server/exchange.h \
	web/server/stream.c web/server/stream.h \
	web/server/gate.c web/server/gate.h \
	web/server/gzip.c web/server/gzip.h \
	web/server/http.c web/server/server.h \
	web/server/listen.c web/server/listen.h \
	web/server/local.c web/server/local.h \
	web/server/pages.c \
	web/server/reply.c web/server/reply.h \
	web/server/router.c web/server/router.h \
	web/server/routes.c web/server/routes.h
nodist_libwebserver_la_SOURCES = web/assets/table.c
libwebserver_la_CPPFLAGS = $(AM_CPPFLAGS) $(MHD_CFLAGS) $(GNUTLS_CFLAGS) $(ZLIB_CFLAGS) $(JANSSON_CFLAGS)
libwebserver_la_LIBADD = libwebapi.la $(MHD_LIBS) $(GNUTLS_LIBS) $(ZLIB_LIBS)

libwebcli_la_SOURCES = \
	web/cli/backup.c \
	web/cli/bring/bring.c web/cli/bring/bring.h web/cli/bring/later.c \
	web/cli/bring/content.c web/cli/bring/content.h \
	web/cli/bring/events.c web/cli/bring/events.h \
	web/cli/bring/import.c \
	web/cli/bring/lines.c web/cli/bring/lines.h \
	web/cli/bring/kept.c web/cli/bring/kept.h \
	web/cli/bring/mlflow.c web/cli/bring/mlflow.h web/cli/bring/mlflow_db.c web/cli/bring/mlruns.c \
	web/cli/bring/sync.c \
	web/cli/bring/wandb.c web/cli/bring/wandb.h \
	web/cli/bring/wandb_file.c web/cli/bring/wandb_file.h \
	web/cli/bring/wandb_items.c web/cli/bring/wandb_items.h \
	web/cli/bring/blocks.c web/cli/bring/blocks.h \
	web/cli/bring/folder.c web/cli/bring/folder.h web/cli/bring/yaml.c web/cli/bring/yaml.h \
	web/cli/cli.c web/cli/cli.h \
	web/cli/commands.c web/cli/commands.h web/cli/commands.def \
	web/cli/compare.c \
	web/cli/diagnosis.c web/cli/diagnosis.h \
	web/cli/db.c \
	web/cli/migrate.c \
	web/cli/doctor.c \
	web/cli/export.c \
	web/cli/export_events.c web/cli/export_events.h \
	web/cli/flags.c web/cli/flags.h \
	web/cli/gc.c \
	web/cli/journals.c web/cli/journals.h \
	web/cli/ls.c \
	web/cli/choose.c web/cli/choose.h \
	web/cli/rm.c \
	web/cli/serve.c \
	web/webhook/webhook.c web/webhook/webhook.h \
	web/cli/show.c \
	web/cli/source.c web/cli/source.h \
	web/cli/table.c web/cli/table.h \
	web/cli/tag.c \
	web/cli/token.c \
	web/cli/trace.c \
	web/cli/why.c web/cli/why.h
libwebcli_la_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS) $(ZLIB_CFLAGS)
libwebcli_la_LIBADD = libwebserver.la libtracker.la $(ZLIB_LIBS)
$(libwebcli_la_OBJECTS): $(store_defs)

# The page and openapi.json travel inside the program.
noinst_PROGRAMS += web/assets/embed
web_assets_embed_SOURCES = web/assets/embed.c
web_assets_embed_LDADD = $(ZLIB_LIBS)
if WITH_UI
embed_page = $(UI_DIST_DIR)
embed_needs = $(UI_DIST_STAMP)
else
embed_page = /index.html=$(srcdir)/web/assets/stub.html
embed_needs = web/assets/stub.html
endif
web/assets/table.c: web/assets/embed$(EXEEXT) schema/api/openapi.json $(embed_needs)
	$(AM_V_GEN)web/assets/embed$(EXEEXT) $@.tmp $(embed_page) \
		/api/v1/openapi.json=$(srcdir)/schema/api/openapi.json && mv $@.tmp $@
CLEANFILES += web/assets/table.c

bashcompletiondir = $(datadir)/bash-completion/completions
EXTRA_DIST += web/cli/dptrack.bash
install-data-local: install-completion
uninstall-local: uninstall-completion
install-completion:
	$(MKDIR_P) $(DESTDIR)$(bashcompletiondir)
	$(INSTALL_DATA) $(srcdir)/web/cli/dptrack.bash $(DESTDIR)$(bashcompletiondir)/dptrack
uninstall-completion:
	rm -f $(DESTDIR)$(bashcompletiondir)/dptrack
.PHONY: install-completion uninstall-completion

bin_PROGRAMS += dptrack
dptrack_SOURCES = web/main.c
dptrack_LDADD = libwebcli.la
dptrack_LDFLAGS = $(AM_LDFLAGS) $(RELOCATION_FLAGS)

# Manual pages of the programs, from their --help.
nodist_man_MANS += dptrack.1 dptrain.1
CLEANFILES += dptrack.1 dptrain.1
EXTRA_DIST += schema/gen/man.sh
dptrack.1: dptrack$(EXEEXT) $(top_srcdir)/schema/gen/man.sh $(top_srcdir)/web/cli/commands.def
	$(AM_V_GEN)$(SHELL) $(top_srcdir)/schema/gen/man.sh ./dptrack dptrack '$(PACKAGE_VERSION)' \
		'keeps, shows and compares training runs' \
		$$(sed -n 's/^COMMAND(\(.*\))$$/\1/p' $(top_srcdir)/web/cli/commands.def) >$@.new && mv $@.new $@
dptrain.1: dptrain$(EXEEXT) $(top_srcdir)/schema/gen/man.sh
	$(AM_V_GEN)$(SHELL) $(top_srcdir)/schema/gen/man.sh ./dptrain dptrain '$(PACKAGE_VERSION)' \
		'trains a network and records the run' \
		$$(./dptrain --help | sed -n 's/^  dptrain \([a-z]*\) .*/\1/p') >$@.new && mv $@.new $@
