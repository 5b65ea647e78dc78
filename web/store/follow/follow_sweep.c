/* SPDX-License-Identifier: Apache-2.0 */
/* follow_sweep.c: decides about files whose content is no longer at their paths, once what took their place is known:
 * the content moved, a copy of it is left, or it is gone. A run without some of its content keeps all it had and is
 * marked gone; the files that remain become a new run. */
#include "web/store/follow/follow_inside.h"

#include "tracker/base/clock.h"
#include "web/store/base/map.h"

#define SWEEP_MOST_S 5.0 /* a sweep waits this long for files that are still to be read */

static void store_run_gone(struct follow *f, const struct follow_run *r)
{
	follow_submit_source(f,
			     &(struct ingest_op){ .kind = &change_source, .run = r->uuid, .state = INGEST_NO_STATE });
}

/* The content of a source is no longer at its file. */
static void lose_source(struct follow *f, struct follow_source *s)
{
	struct follow_file *copy;

	s->offset = s->file->offset;
	copy = follow_find_copy(f, s);
	if (copy) {
		follow_take_source(f, s, copy, false);
		follow_enqueue(f, copy, FOLLOW_URGENT);
		return;
	}
	follow_lose_source(s);
	s->run->lost = true;
}

/* A run without some of its content keeps what it had; its other files become a new run. */
static void settle_lost_run(struct follow *f, struct follow_run *r)
{
	r->lost = false;
	r->gone = r->settled = true;
	if (r->folder && r->folder->run == r)
		r->folder->run = NULL;
	store_run_gone(f, r);
	for (struct follow_source *s = r->first; s; s = s->next) {
		if (!s->file)
			continue;
		r->broken = true;
		follow_lose_source(s);
	}
}

/* Decides about one file; false: not now. */
static bool sweep_file(struct follow *f, struct follow_file *file)
{
	struct follow_source *s = file->source;
	struct stat sb;
	bool there = follow_stat_file(f, file->path, &sb);

	if (file->under_way)
		return false;
	if (there && s && !file->changed && !file->alias && (uint64_t)sb.st_size >= file->offset &&
	    (!file->inode || file->inode == sb.st_ino)) {
		file->missing_s = 0; /* it is back, or only its folder's name changed in between */
		follow_enqueue(f, file, FOLLOW_URGENT);
		return true;
	}
	if (s && s->file == file)
		lose_source(f, s);
	return true;
}

/* Runs with bytes in transfer are not settled: their ends would be taken for those of the next run. */
static bool is_run_moving(const struct follow_run *r)
{
	const struct follow_source *s = r->first;

	while (s && !(s->file && s->file->under_way))
		s = s->next;
	return s != NULL;
}

void follow_sweep(struct follow *f)
{
	const double now = clock_mono_s(), at = f->scan.sweep_at_s;
	bool all = true;
	size_t i;

	if (!at || now < at ||
	    ((follow_waiting(f) || f->scan.running || !f->learned.knows_all) && now < at + SWEEP_MOST_S))
		return;
	for (i = 0; i < map_count(f->files); i++) {
		struct follow_file *file = map_at(f->files, i);

		if (file->missing_s > 0)
			all = sweep_file(f, file) && all;
	}
	for (i = 0; i < map_count(f->runs); i++) {
		struct follow_run *r = map_at(f->runs, i);

		if (r->lost && is_run_moving(r))
			all = false;
		else if (r->lost)
			settle_lost_run(f, r);
	}
	for (i = 0; i < map_count(f->files); i++) {
		struct follow_file *file = map_at(f->files, i);

		if (file->under_way || (!(file->missing_s > 0) && !(file->source && file->source->run->settled)))
			continue;
		follow_forget_file(file);
		follow_enqueue(f, file, FOLLOW_URGENT); /* what is there now, if anything */
	}
	for (i = 0; i < map_count(f->runs); i++)
		((struct follow_run *)map_at(f->runs, i))->settled = false;
	follow_requeue_refused(f);
	f->scan.sweep_at_s = all ? 0 : now + 0.05;
	pthread_mutex_lock(&f->shared.lock);
	f->shared.unsettled = !all;
	pthread_cond_broadcast(&f->shared.changed);
	pthread_mutex_unlock(&f->shared.lock);
}
