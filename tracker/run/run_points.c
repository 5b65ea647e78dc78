/* SPDX-License-Identifier: Apache-2.0 */
/* run_points.c: the functions of dptrack.h that log points and media: add the time, look up the key, queue them, and
 * never wait. Refused points are counted and cause a warning. Independent of what happens after the queue. */
#include <math.h>
#include <stdlib.h>

#include "tracker/base/clock.h"
#include "tracker/base/utf8.h"
#include "tracker/run/run_inside.h"

static int refuse_key(struct dptrack_run *run, const char *key, int rc, const char *why)
{
	char shown[KEY_SHOWN_BYTES];

	atomic_fetch_add_explicit(&run->dropped, 1, memory_order_relaxed);
	key_show(shown, key);
	if (rc == ERR_USAGE)
		warn_post(run->warn, WARN_KEY, "points of series \"%s\" are lost: the key %s", shown, why);
	else
		warn_post(run->warn, WARN_KEY, "points of series \"%s\" are lost: the run already has %d series", shown,
			  LIMIT_keys_per_run);
	return rc;
}

static int queue_point(struct dptrack_run *run, const char *key, struct point *p)
{
	const char *why = "";
	int rc = keys_get(run->keys, key, &p->key, &why);

	if (p->step > atomic_load_explicit(&run->newest_step, memory_order_relaxed))
		atomic_store_explicit(&run->newest_step, p->step, memory_order_relaxed);
	if (rc)
		return refuse_key(run, key, rc, why);
	if (log_queue_push(run->lanes, p))
		return 0;
	atomic_fetch_add_explicit(&run->dropped, 1, memory_order_relaxed);
	return DPTRACK_LIMIT;
}

int dptrack_log(struct dptrack_run *run, int64_t step, const char *key, double value)
{
	if (!run_usable(run))
		return DPTRACK_FORKED;
	return queue_point(
		run, key,
		&(struct point){ .wall_time = clock_wall_s(), .value = value, .step = step, .rank = run->series });
}

int dptrack_log_many(struct dptrack_run *run, int64_t step, size_t n, const char *const *keys, const double *values)
{
	double now;
	int rc = 0, one;

	if (!run_usable(run))
		return DPTRACK_FORKED;
	now = clock_wall_s();
	for (size_t i = 0; i < n; i++) {
		one = queue_point(
			run, keys[i],
			&(struct point){ .wall_time = now, .value = values[i], .step = step, .rank = run->series });
		rc = one ? one : rc;
	}
	return rc;
}

int dptrack_log_rank(struct dptrack_run *run, int rank, int64_t step, const char *key, double value)
{
	if (!run_usable(run))
		return DPTRACK_FORKED;
	return dptrack_log_at(run, rank, step, key, value, clock_wall_s());
}

int dptrack_log_at(struct dptrack_run *run, int rank, int64_t step, const char *key, double value, double wall_time)
{
	if (!run_usable(run))
		return DPTRACK_FORKED;
	if (rank < EVENT_RANK_RUN || rank > LIMIT_rank || isnan(wall_time)) {
		atomic_fetch_add_explicit(&run->dropped, 1, memory_order_relaxed);
		warn_post(run->warn, WARN_KEY, "points are lost: rank %d or the time is out of range", rank);
		return DPTRACK_USAGE;
	}
	return queue_point(run, key,
			   &(struct point){ .wall_time = wall_time, .value = value, .step = step, .rank = rank });
}

/* ---- pictures, histograms, texts, tables and sounds, as TensorBoard's messages ---- */

static int warn_media_lost(struct dptrack_run *run, const char *key, const char *why, int rc)
{
	char shown[KEY_SHOWN_BYTES];

	key_show(shown, key);
	warn_post(run->warn, WARN_MEDIA, "\"%s\" is lost: %s", shown, why);
	return rc;
}

/* Queues content under key and frees it. */
static int queue_media(struct dptrack_run *run, int64_t step, const char *key, struct buf *content)
{
	const char *why = key_check(key ? key : "", key ? strlen(key) : 0);
	struct media_place place = { .step = step, .wall_time = clock_wall_s(), .rank = run->series,
				     .journal_rank = run->rank };
	int rc;

	if (why) {
		rc = warn_media_lost(run, key, why, DPTRACK_USAGE);
	} else if (buf_failed(content)) {
		rc = warn_media_lost(run, key, "larger than 8 MiB", DPTRACK_LIMIT);
	} else {
		place.key = (struct event_text){ key, strlen(key) };
		rc = records_media(run->records, &place,
				   (struct event_span){ (unsigned char *)content->data,
							(unsigned char *)content->data + content->len });
		if (rc)
			warn_media_lost(run, key, "the write queue is full", rc);
	}
	buf_done(content);
	return rc;
}

static struct event_span make_span(const void *bytes, size_t n)
{
	return (struct event_span){ bytes, (const unsigned char *)bytes + n };
}

int dptrack_image(struct dptrack_run *run, int64_t step, const char *key, const struct dptrack_bytes *file, int width,
		  int height)
{
	struct buf content;

	if (!run_usable(run))
		return DPTRACK_FORKED;
	if (width <= 0 || height <= 0 || !file->n)
		return warn_media_lost(run, key, "an image needs pixels", DPTRACK_USAGE);
	buf_init(&content, LIMIT_media_bytes);
	media_add_image(&content, make_span(file->at, file->n), (unsigned)width, (unsigned)height);
	return queue_media(run, step, key, &content);
}

int dptrack_audio(struct dptrack_run *run, int64_t step, const char *key, const struct dptrack_bytes *file,
		  const char *type)
{
	struct buf content;

	if (!run_usable(run))
		return DPTRACK_FORKED;
	if (!file->n || !type || !utf8_valid(type, strlen(type)))
		return warn_media_lost(run, key, "a sound needs bytes and a type", DPTRACK_USAGE);
	buf_init(&content, LIMIT_media_bytes);
	media_add_audio(&content, make_span(file->at, file->n), (struct event_text){ type, strlen(type) });
	return queue_media(run, step, key, &content);
}

int dptrack_histogram(struct dptrack_run *run, int64_t step, const char *key, const double *edges, const double *counts,
		      size_t bins)
{
	struct buf content;

	if (!run_usable(run))
		return DPTRACK_FORKED;
	for (size_t i = 0; i < bins; i++)
		if (!(edges[i] <= edges[i + 1]) || !(counts[i] >= 0) || !isfinite(edges[i]) || !isfinite(edges[i + 1]))
			return warn_media_lost(run, key,
					       "a histogram needs finite ascending edges and counts of 0 or more",
					       DPTRACK_USAGE);
	if (!bins)
		return warn_media_lost(run, key, "a histogram needs bins", DPTRACK_USAGE);
	buf_init(&content, LIMIT_media_bytes);
	media_add_histogram(&content, edges, counts, bins);
	return queue_media(run, step, key, &content);
}

/* A copy of text as valid UTF-8, to be freed by the caller; .at NULL if out of memory. */
static struct event_text copy_clean_text(const char *text)
{
	size_t n = text ? strlen(text) : 0;
	char *copy = malloc(3 * n + 1);

	return (struct event_text){ copy, copy ? utf8_copy(copy, 3 * n + 1, text ? text : "", n, NULL) : 0 };
}

int dptrack_text(struct dptrack_run *run, int64_t step, const char *key, const char *markdown)
{
	struct event_text text;
	struct buf content;

	if (!run_usable(run))
		return DPTRACK_FORKED;
	text = copy_clean_text(markdown);
	if (!text.at)
		return DPTRACK_NOMEM;
	buf_init(&content, LIMIT_media_bytes);
	media_add_text(&content, text);
	free((void *)(uintptr_t)text.at);
	return queue_media(run, step, key, &content);
}

int dptrack_table(struct dptrack_run *run, int64_t step, const char *key, const char *const *cells, size_t rows,
		  size_t columns)
{
	struct event_text *clear;
	struct buf content;
	size_t n = 0, made = 0;
	int rc = 0;

	if (!run_usable(run))
		return DPTRACK_FORKED;
	if (!rows || !columns || rows > LIMIT_media_bytes / columns)
		return warn_media_lost(run, key, "a table needs rows and columns, at most 8 MiB", DPTRACK_USAGE);
	n = rows * columns;
	clear = calloc(n, sizeof(*clear));
	for (; clear && made < n; made++) {
		clear[made] = copy_clean_text(cells[made]);
		if (!clear[made].at)
			break;
	}
	buf_init(&content, LIMIT_media_bytes);
	if (clear && made == n)
		media_add_table(&content, clear, rows, columns);
	else
		rc = DPTRACK_NOMEM;
	for (size_t i = 0; i < made; i++)
		free((void *)(uintptr_t)clear[i].at);
	free(clear);
	return rc ? rc : queue_media(run, step, key, &content);
}
