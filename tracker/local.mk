# SPDX-License-Identifier: Apache-2.0
# libtrackbase: the base library of all three programs.
noinst_LTLIBRARIES += libtrackbase.la
libtrackbase_la_SOURCES = \
	tracker/base/arena.c tracker/base/arena.h \
	tracker/base/array.c tracker/base/array.h \
	tracker/base/buf.c tracker/base/buf.h \
	tracker/base/clock.c tracker/base/clock.h \
	tracker/base/crc32c.c tracker/base/crc32c.h \
	tracker/base/err.c tracker/base/err.h \
	tracker/base/file.c tracker/base/file.h \
	tracker/base/hash.h tracker/base/json_print.h tracker/base/little.h tracker/base/round.h \
	tracker/base/library.c tracker/base/library.h \
	tracker/base/log.c tracker/base/log.h \
	tracker/base/md5.c tracker/base/md5.h \
	tracker/base/nomem.c tracker/base/nomem.h \
	tracker/base/run_folders.c tracker/base/run_folders.h \
	tracker/base/sha256.c tracker/base/sha256.h \
	tracker/base/terminal.c tracker/base/terminal.h \
	tracker/base/text.c tracker/base/text.h \
	tracker/base/thread.c tracker/base/thread.h \
	tracker/base/utf8.c tracker/base/utf8.h \
	tracker/base/x86.c tracker/base/x86.h \
	tracker/curl/curl_request.c tracker/curl/curl_request.h tracker/curl/curlso.c tracker/curl/curlso.h \
	tracker/system/cgroup.c tracker/system/cgroup.h
libtrackbase_la_CFLAGS = $(AM_CFLAGS) $(CURL_CFLAGS)
libtrackbase_la_LIBADD = -lm

# libmem: memory of programs, which end without it; libdptrack is built without libmem.
noinst_LTLIBRARIES += libmem.la
libmem_la_SOURCES = tracker/mem/mem.c tracker/mem/mem.h
libmem_la_LIBADD = libtrackbase.la

# libobject: a client of S3 and Google Cloud Storage, for dptrain's data and dptrack's files; libdptrack is built without it.
noinst_LTLIBRARIES += libobject.la
libobject_la_SOURCES = \
	tracker/object/answer.c \
	tracker/object/auth_request.c \
	tracker/object/client.c tracker/object/client.h tracker/object/client_call.c \
	tracker/object/google_auth.c \
	tracker/object/identity.c \
	tracker/object/object.c tracker/object/object.h \
	tracker/object/settings.c tracker/object/settings.h \
	tracker/object/sign.c tracker/object/sign.h \
	tracker/object/upload.c
libobject_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(EXPAT_CFLAGS)
libobject_la_LIBADD = libtrackbase.la $(JANSSON_LIBS)

# libinsight: statistics and diagnosis of runs, for dptrain and dptrack.
noinst_LTLIBRARIES += libinsight.la
libinsight_la_SOURCES = \
	schema/insight/phases.def schema/insight/goals.def schema/insight/param_follows.def schema/insight/leaves.def \
	tracker/insight/run_change.c tracker/insight/run_change.h \
	tracker/insight/run_diagnosis.c tracker/insight/run_diagnosis.h tracker/insight/learning.c tracker/insight/learning.h \
	tracker/insight/step_time.c tracker/insight/step_time.h tracker/insight/tuning.c tracker/insight/tuning.h \
	tracker/insight/goal.c tracker/insight/goal.h tracker/insight/spread.c tracker/insight/spread.h \
	tracker/insight/steps.c tracker/insight/steps.h \
	tracker/insight/bottleneck_tree.c tracker/insight/bottleneck_tree.h
libinsight_la_LIBADD = libtrackbase.la -lm

# libtracker: journals, runs and their upload to a server; part of libdptrack, dptrain and dptrack.
noinst_LTLIBRARIES += libtracker.la
libtracker_la_SOURCES = \
	tracker/dptrack.h \
	tracker/event/event_encode.c tracker/event/event_encode.h \
	tracker/event/event.c tracker/event/event.h \
	tracker/event/extension.c tracker/event/extension.h \
	tracker/event/event_media.c tracker/event/event_media.h \
	tracker/event/record.c tracker/event/record.h \
	tracker/event/tensorboard.h \
	tracker/event/tensorboard.c \
	tracker/event/wire.c tracker/event/wire.h \
	tracker/run/run_folder.c tracker/run/run_folder.h \
	tracker/run/journal_file.c \
	tracker/run/keys.c \
	tracker/run/log_queue.c tracker/run/log_queue.h \
	tracker/run/console_capture.c \
	tracker/run/records.c \
	tracker/run/run.c tracker/run/run_inside.h \
	tracker/run/run_facts.c \
	tracker/run/run_file.c \
	tracker/run/run_points.c \
	tracker/run/run_read.c \
	tracker/run/system_sampler.c \
	tracker/run/warn.c \
	tracker/run/writer.c \
	tracker/system/system_sample.c tracker/system/system_sample.h \
	tracker/sink/file_uploader.c \
	tracker/sink/http_client.c tracker/sink/http_client.h \
	tracker/sink/sender.c \
	tracker/sink/worker.c tracker/sink/worker.h \
	tracker/sink/journal_uploader.c tracker/sink/sink.h
libtracker_la_CFLAGS = $(AM_CFLAGS) $(ZLIB_CFLAGS) $(CURL_CFLAGS)
libtracker_la_LIBADD = libtrackbase.la $(ZLIB_LIBS) -lm
include_HEADERS += tracker/dptrack.h

# libdptrack.so: the same objects; only dptrack_* is visible, with its own version.
lib_LTLIBRARIES += libdptrack.la
libdptrack_la_SOURCES =
libdptrack_la_LIBADD = libtracker.la
libdptrack_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 -no-undefined \
	-Wl,--version-script=$(top_srcdir)/tracker/dptrack.map
libdptrack_la_DEPENDENCIES = libtracker.la tracker/dptrack.map
EXTRA_DIST += tracker/dptrack.map
pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = tracker/dptrack.pc

# Manual pages of the library, from the header: tracker/man/<function>.3.
libdptrack_man = tracker/man/dptrack.3 tracker/man/dptrack_audio.3 tracker/man/dptrack_histogram.3 \
	tracker/man/dptrack_image.3 tracker/man/dptrack_input.3 tracker/man/dptrack_table.3 tracker/man/dptrack_text.3 \
	tracker/man/dptrack_alert.3 tracker/man/dptrack_code.3 \
	tracker/man/dptrack_console.3 tracker/man/dptrack_draw_id.3 tracker/man/dptrack_dropped.3 \
	tracker/man/dptrack_environment.3 tracker/man/dptrack_file.3 tracker/man/dptrack_find.3 tracker/man/dptrack_flush.3 tracker/man/dptrack_gpu.3 \
	tracker/man/dptrack_log.3 tracker/man/dptrack_log_at.3 tracker/man/dptrack_log_many.3 tracker/man/dptrack_log_rank.3 \
	tracker/man/dptrack_note.3 tracker/man/dptrack_param.3 tracker/man/dptrack_param_change.3 \
	tracker/man/dptrack_param_bool.3 tracker/man/dptrack_param_f64.3 tracker/man/dptrack_param_i64.3 tracker/man/dptrack_read.3 \
	tracker/man/dptrack_run_close.3 tracker/man/dptrack_run_dir.3 tracker/man/dptrack_run_id.3 \
	tracker/man/dptrack_run_name.3 tracker/man/dptrack_run_open.3 tracker/man/dptrack_run_segment.3 \
	tracker/man/dptrack_segment_param.3 tracker/man/dptrack_set_status.3 tracker/man/dptrack_system.3 tracker/man/dptrack_tag.3
nodist_man_MANS += $(libdptrack_man)
CLEANFILES += $(libdptrack_man)
EXTRA_DIST += tracker/man.awk
$(libdptrack_man): tracker/man/stamp
tracker/man/stamp: $(top_srcdir)/tracker/dptrack.h $(top_srcdir)/tracker/man.awk
	$(AM_V_GEN)$(MKDIR_P) tracker/man && \
	$(AWK) -v dir=tracker/man -v version='$(PACKAGE_VERSION)' -f $(top_srcdir)/tracker/man.awk $(top_srcdir)/tracker/dptrack.h && \
	touch $@
CLEANFILES += tracker/man/stamp

# The Python package wraps the library; pip builds it with build_dptrack.py, make is not involved.
EXTRA_DIST += tracker/python/build_dptrack.py tracker/python/pyproject.toml tracker/python/dptrack/__init__.py \
	tracker/python/dptrack/__main__.py \
	tracker/python/dptrack/importers/__init__.py tracker/python/dptrack/importers/__main__.py tracker/python/dptrack/importers/_yaml.py \
	tracker/python/dptrack/importers/aim.py tracker/python/dptrack/importers/mlflow.py tracker/python/dptrack/importers/mlflow_server.py \
	tracker/python/dptrack/importers/trackio.py tracker/python/dptrack/importers/wandb.py tracker/python/dptrack/importers/wandb_files.py \
	tracker/python/dptrack/accelerate.py \
	tracker/python/dptrack/keras.py tracker/python/dptrack/_read.py tracker/python/dptrack/_watch.py \
	tracker/python/dptrack/_console.py tracker/python/dptrack/_atexit.py tracker/python/dptrack/_environment.py tracker/python/dptrack/_init.py \
	tracker/python/dptrack/_goals.py tracker/python/dptrack/_job.py tracker/python/dptrack/_library.py tracker/python/dptrack/_media.py tracker/python/dptrack/_program.py tracker/python/dptrack/_query.py \
	tracker/python/dptrack/pure/__init__.py tracker/python/dptrack/pure/records.py tracker/python/dptrack/pure/send.py \
	tracker/python/dptrack/mcp/__init__.py tracker/python/dptrack/mcp/__main__.py tracker/python/dptrack/mcp/tools.py \
	tracker/python/dptrack/_run.py tracker/python/dptrack/_secrets.py tracker/python/dptrack/_values.py \
	tracker/python/dptrack/lightning.py tracker/python/dptrack/optuna.py tracker/python/dptrack/torch.py \
	tracker/python/dptrack/transformers.py tracker/python/dptrack/_missing.py tracker/python/dptrack/_notebook.py \
	tracker/python/dptrack/py.typed
