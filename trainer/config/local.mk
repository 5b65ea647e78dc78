# Flags and the resolved run configuration.
libtrainer_la_SOURCES += trainer/config/config.h trainer/config/flags.def trainer/config/lr_schedule.h trainer/config/flags.h \
	trainer/config/cores.c trainer/config/link_spec.c trainer/config/flags.c trainer/config/parse.c trainer/config/file.c \
	trainer/config/resolve.c trainer/config/resolve_inside.h trainer/config/resolve_ranks.c trainer/config/resolve_recipe.c \
	trainer/config/resolve_commands.c trainer/config/value.c \
	trainer/config/nearest.c trainer/config/flag_origin.c trainer/config/print.c trainer/config/lr_schedule.c trainer/config/train_series.c trainer/config/series.def trainer/config/train_series.h
libtrainer_la_CPPFLAGS += $(JANSSON_CFLAGS)
libtrainer_la_LIBADD += $(JANSSON_LIBS)
EXTRA_DIST += schema/config/run-config.schema.json schema/gen/config_schema.py
