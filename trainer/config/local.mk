# SPDX-License-Identifier: Apache-2.0
# Flags and the resolved run configuration.
libtrainer_la_SOURCES += trainer/config/brief.def trainer/config/complete.c trainer/config/config.h trainer/config/config_file.c trainer/config/document.c trainer/config/document.h trainer/config/flags.c trainer/config/flags.def \
	trainer/config/flags.h trainer/config/help.c trainer/config/lr_schedule.c trainer/config/lr_schedule.h trainer/config/needs.def trainer/config/parse.c trainer/config/nearest.c \
	trainer/config/print.c trainer/config/resolve.c trainer/config/resolve_ranks.c trainer/config/resolve_recipe.c \
	trainer/config/series.def trainer/config/value.c
libtrainer_la_CPPFLAGS += $(JANSSON_CFLAGS) $(YAML_CFLAGS)
libtrainer_la_LIBADD += $(JANSSON_LIBS) $(YAML_LIBS)
EXTRA_DIST += schema/config/run-config.schema.json schema/gen/config_schema.py
