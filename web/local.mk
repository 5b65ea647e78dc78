# SPDX-License-Identifier: Apache-2.0
include web/store/local.mk
include web/ui/local.mk
include web/site/local.mk

# libwebapi: the handlers. libwebserver: HTTP around them. libwebcli: the commands.
noinst_LTLIBRARIES += libwebapi.la libwebserver.la libwebcli.la
EXTRA_DIST += web/assets/stub.html
libwebapi_la_SOURCES = \
	web/api/api.c web/api/api.h \
	web/api/blob.c web/api/blob.h \
	web/api/call.c web/api/call.h \
	web/api/js.c web/api/js.h \
	web/api/journal_pace.c \
	web/api/json.c \
	web/api/session.c \
	web/api/native/api_artifacts.c \
	web/api/native/api_compare.c \
	web/api/native/api_docs.c \
	web/api/native/api_experiments.c \
	web/api/native/api_export.c \
	web/api/native/api_export_events.c \
	web/api/native/insight/api_diagnosis.c \
	web/api/native/insight/timing.c web/api/native/insight/timing.h \
	web/api/native/insight/api_trace.c \
	web/api/native/insight/api_why.c \
	web/api/native/insight/why_read.c \
	web/api/native/api_run_records.c \
	web/api/native/saved_view/api_alerts.c web/api/native/saved_view/api_saved_views.c \
	web/api/native/meta.c \
	web/api/native/api_points.c \
	web/api/native/api_page.c \
	web/api/native/native_inside.h web/api/native/request.c \
	web/api/native/run_json.c \
	web/api/native/runs.c \
	web/api/native/formula/derived.c web/api/native/formula/derived.h \
	web/api/native/formula/formula.c \
	web/api/native/groups/groups.c web/api/native/groups/groups.h \
	web/api/native/api_series.c \
	web/api/native/series_line.c \
	web/api/native/api_tokens.c web/api/native/api_audit.c web/api/native/api_shares.c web/api/native/api_retention.c web/api/native/api_login.c \
	web/oidc/oidc.c web/oidc/oidc.h web/oidc/oidc_config.c web/oidc/oidc_inside.h web/oidc/provider.c web/oidc/id_token.c \
	web/api/mlflow/mlflow_artifacts.c \
	web/api/mlflow/mlflow_experiments.c \
	web/api/mlflow/mlflow_inputs_route.c \
	web/api/mlflow/mlflow_metrics.c \
	web/api/mlflow/mlflow_models.c \
	web/api/mlflow/mlflow_names.c \
	web/api/mlflow/mlflow_registry.c \
	web/api/mlflow/mlflow_request.c \
	web/api/mlflow/mlflow_run_json.c \
	web/api/mlflow/mlflow_runs.c \
	web/api/mlflow/mlflow_sources.c \
	web/api/mlflow/mlflow_versions.c \
	web/api/mlflow/mlflow_request.h \
	web/api/wandb/graphql.c web/api/wandb/graphql.h \
	web/api/wandb/roots.def web/api/wandb/wandb_graphql.c web/api/wandb/wandb_names.c \
	web/api/wandb/wandb.h \
	web/api/wandb/wandb_artifacts.c web/api/wandb/wandb_artifacts.h web/api/wandb/wandb_artifact_files.c \
	web/api/wandb/wandb_filter.c web/api/wandb/wandb_history.c \
	web/api/wandb/wandb_files.c web/api/wandb/wandb_media.c \
	web/api/wandb/wandb_read.c \
	web/api/wandb/wandb_records.c \
	web/api/wandb/wandb_rows.c \
	web/api/wandb/wandb_run.c \
	web/api/wandb/wandb_site.c web/api/wandb/wandb_stream.c web/api/wandb/wandb_versions.c
libwebapi_la_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS) $(CJOSE_CFLAGS)
libwebapi_la_LIBADD = libwebstore.la libinsight.la $(JANSSON_LIBS)

libwebserver_la_SOURCES = \
	web/assets/asset.h \
	web/assets/docs_site.c \
	web/server/access.c web/server/access.h \
	web/server/sandbox.c web/server/sandbox.h \
	web/server/conns.c web/server/framing.c \
	web/server/exchange.c web/server/exchange.h \
	web/server/stream.c \
	web/server/gate.c web/server/gate.h \
	web/server/gzip.c web/server/gzip.h \
	web/server/http.c web/server/server.h \
	web/server/listen.c \
	web/server/tls.c \
	web/server/local.c web/server/local.h \
	web/server/override.h web/server/reply.c \
	web/server/router.c
nodist_libwebserver_la_SOURCES = web/assets/table.c
libwebserver_la_CPPFLAGS = $(AM_CPPFLAGS) -DDPTRACK_DOCS_DIR='"$(pkgdatadir)/docs"' $(MHD_CFLAGS) $(GNUTLS_CFLAGS) $(ZLIB_CFLAGS) $(JANSSON_CFLAGS)
libwebserver_la_LIBADD = libwebapi.la $(MHD_LIBS) $(GNUTLS_LIBS) $(ZLIB_LIBS)

libwebcli_la_SOURCES = \
	web/cli/import/content.c web/cli/import/importer.c web/cli/import/importer.h web/cli/import/deferred.c \
	web/cli/import/import_events.c \
	web/cli/import/cmd_import.c \
	web/cli/import/json_lines.c \
	web/cli/import/model_lines.c \
	web/cli/import/sync.c \
	web/cli/cli.c web/cli/cli.h \
	web/cli/commands.def \
	web/cli/cmd_compare.c \
	web/cli/cmd_mcp.c web/cli/python.c \
	web/cli/cmd_store.c \
	web/cli/cmd_export.c \
	web/cli/cmd_maintenance.c \
	web/cli/journals.c web/cli/journals.h \
	web/cli/cmd_ls.c \
	web/cli/cmd_edit.c \
	web/cli/cmd_serve.c \
	web/webhook/webhook.c web/webhook/webhook.h \
	web/cli/cmd_show.c \
	web/cli/source.c web/cli/source.h \
	web/cli/table.c \
	web/cli/cmd_token.c web/cli/cmd_share.c web/cli/cmd_audit.c web/cli/cmd_retention.c web/cli/cmd_login.c web/cli/cli_help.c web/cli/cli_help.h web/cli/complete.c web/cli/layer_series.c web/cli/layer_series.h
libwebcli_la_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS) $(ZLIB_CFLAGS)
libwebcli_la_LIBADD = libwebserver.la libtracker.la $(ZLIB_LIBS)
$(libwebcli_la_OBJECTS): $(store_defs)

# The page and openapi.json are embedded in the program.
noinst_PROGRAMS += web/assets/embed
web_assets_embed_SOURCES = web/assets/embed_assets.c
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

# Completion of both programs: one script for each shell, with the program's name filled in.
completion_shells = bash zsh fish
EXTRA_DIST += schema/completion/bash.in schema/completion/zsh.in schema/completion/fish.in
install-data-local: install-completion
uninstall-local: uninstall-completion
install-completion:
	for program in dptrack dptrain; do \
		for shell in $(completion_shells); do \
			case $$shell in \
			bash) to=bash-completion/completions/$$program ;; \
			zsh) to=zsh/site-functions/_$$program ;; \
			fish) to=fish/vendor_completions.d/$$program.fish ;; \
			esac; \
			to=$(DESTDIR)$(datadir)/$$to; \
			$(MKDIR_P) "$${to%/*}" || exit 1; \
			sed "s/@program@/$$program/g" $(srcdir)/schema/completion/$$shell.in >"$$to" || exit 1; \
			chmod 644 "$$to"; \
		done; \
	done
uninstall-completion:
	for program in dptrack dptrain; do \
		rm -f $(DESTDIR)$(datadir)/bash-completion/completions/$$program \
			$(DESTDIR)$(datadir)/zsh/site-functions/_$$program \
			$(DESTDIR)$(datadir)/fish/vendor_completions.d/$$program.fish; \
	done
.PHONY: install-completion uninstall-completion

bin_PROGRAMS += dptrack
dptrack_SOURCES = web/main.c
dptrack_LDADD = libwebcli.la $(STATIC_LIBS)
dptrack_LDFLAGS = $(AM_LDFLAGS) $(RELOCATION_FLAGS) $(STATIC_FLAGS)

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
		$$(./dptrain --help | sed -n '/^Commands/,/^$$/s/^  \([a-z]*\) .*/\1/p') >$@.new && mv $@.new $@

include web/deploy/local.mk
