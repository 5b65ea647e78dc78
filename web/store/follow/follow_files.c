/* follow_files.c: the known files, found by the tree or stored earlier, and their queues. */
#include "web/store/follow/follow_inside.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "web/store/base/map.h"
#include "web/store/base/parts.h"
#include "web/store/db/db.h"

#define RANGE_BYTES ((size_t)1 << 20)
#define LEARN_ROWS 1000 /* per query */
#define NEWEST_ROWS 100 /* per query: each may cost the disk some reads */
#define NEWEST_MAX 5000 /* the scan finds further ones soon enough */
#define GLANCE_S 0.5

static void unlink_follow_file(struct follow *f, struct follow_file *file)
{
	if (!file->turn)
		return;
	*file->back = file->next;
	if (file->next)
		file->next->back = file->back;
	else
		f->lines[file->turn].end = file->back;
	file->turn = FOLLOW_NOWHERE;
}

void follow_enqueue(struct follow *f, struct follow_file *file, enum follow_turn turn)
{
	struct follow_line *l = &f->lines[turn];

	if (file->under_way && (!file->again || turn < file->again))
		file->again = turn;
	if (file->under_way || (file->turn && file->turn <= turn))
		return;
	unlink_follow_file(f, file);
	file->turn = turn;
	file->next = NULL;
	file->back = l->end;
	*l->end = file;
	l->end = &file->next;
}

/* Old files are read only once their stored offsets are known: most are complete. */
struct follow_file *follow_waiting(const struct follow *f)
{
	enum follow_turn last = f->knows_all ? FOLLOW_REST : FOLLOW_RECENT, turn = FOLLOW_URGENT;

	while (turn < last && !f->lines[turn].first)
		turn++;
	return f->lines[turn].first;
}

struct follow_file *follow_dequeue(struct follow *f)
{
	struct follow_file *file = follow_waiting(f);

	if (file)
		unlink_follow_file(f, file);
	return file;
}

void follow_requeue_refused(struct follow *f)
{
	while (f->lines[FOLLOW_REFUSED].first)
		follow_enqueue(f, f->lines[FOLLOW_REFUSED].first, FOLLOW_REST);
}

void follow_first_done(struct follow *f, struct follow_file *file)
{
	if (!file->first)
		return;
	file->first = false;
	pthread_mutex_lock(&f->lock);
	if (--f->first_left == 0 && f->scanned)
		pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
}

struct follow_file *follow_file_of(struct follow *f, const char *path)
{
	struct follow_file *file = map_put(f->files, path, strlen(path));

	if (file && !file->f) {
		file->f = f;
		file->range = RANGE_BYTES;
		file->path = map_text(f->files, path);
	}
	return file;
}
void follow_found(void *arg, const struct tree_file *found)
{
	struct follow *f = arg;
	struct follow_file *file = follow_file_of(f, found->path);

	if (!file)
		return;
	if (found->linked)
		follow_glance_at(f, file, INFINITY);
	else if (!tree_watching(f->tree) && found->bytes >= 0 &&
		 clock_wall_s() - (double)found->time_s < FOLLOW_GROWS_S)
		follow_glance_at(f, file, FOLLOW_GROWS_S);
	if (found->scanned && file->asked && !file->under_way && !file->dead && found->bytes >= 0 &&
	    (uint64_t)found->bytes <= file->offset)
		return; /* unchanged */
	if (!f->scanned && found->scanned && !file->first) {
		file->first = true;
		pthread_mutex_lock(&f->lock);
		f->first_left++;
		pthread_mutex_unlock(&f->lock);
	}
	follow_enqueue(f, file, found->scanned ? FOLLOW_REST : FOLLOW_URGENT);
}

void follow_glance_at(struct follow *f, struct follow_file *file, double for_s)
{
	double until_s = clock_mono_s() + for_s;

	if (file->glance_until_s == 0) {
		file->next_glance = f->glances;
		f->glances = file;
	}
	file->glance_until_s = until_s > file->glance_until_s ? until_s : file->glance_until_s;
}

void follow_glance(struct follow *f)
{
	struct follow_file **at = &f->glances, *file;
	double now = clock_mono_s();

	f->next_glance_s = now + GLANCE_S;
	while ((file = *at)) {
		follow_enqueue(f, file, FOLLOW_RECENT);
		if (file->glance_until_s > now) {
			at = &file->next_glance;
			continue;
		}
		*at = file->next_glance;
		file->glance_until_s = 0;
	}
}

static struct follow_file *learn_stored_file(struct follow *f, struct db_rows *q)
{
	struct follow_file *file = follow_file_of(f, db_str(q, COL_writer_paths_path));

	if (file && !file->asked) {
		file->offset = (uint64_t)db_i64(q, COL_writer_paths_durable);
		file->asked = true;
	}
	return file;
}

int follow_learn_newest(struct follow *f, struct err *err)
{
	struct follow_newest *at = &f->newest_at;
	struct follow_file *file;
	size_t before = f->newest_count;
	struct db_rows *q;
	struct db *d = NULL;
	int rc = readers_take(f->s, &d, err);

	if (!rc)
		rc = db_start(d, &q, DB_writer_paths_newest, err, "iiii", at->rev, at->run, at->writer,
			      (int64_t)NEWEST_ROWS);
	while (!rc && (rc = db_next(d, q, err)) > 0) {
		file = learn_stored_file(f, q);
		if (file) {
			tree_watch_file(f->tree, file->path);
			follow_enqueue(f, file, FOLLOW_RECENT);
		}
		*at = (struct follow_newest){ db_i64(q, COL_writer_paths_rev), db_i64(q, COL_writer_paths_run_id),
					      db_i64(q, COL_writer_paths_id) };
		f->newest_count++;
		rc = 0;
	}
	readers_give(f->s, d);
	f->knows_newest = rc || f->newest_count == before || f->newest_count >= NEWEST_MAX;
	return rc;
}

/* Reads stored offsets of some files by path, so that a restart opens only files that grew. */
int follow_learn_some(struct follow *f, struct err *err)
{
	int64_t before = f->learned;
	struct db *d;
	struct db_rows *q;
	int rc = readers_take(f->s, &d, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_writer_paths, err, "ii", f->learned, (int64_t)LEARN_ROWS);
	while (!rc && (rc = db_next(d, q, err)) > 0) {
		learn_stored_file(f, q);
		f->learned = db_i64(q, COL_writer_paths_id);
		rc = 0;
	}
	readers_give(f->s, d);
	f->knows_all = rc || f->learned == before;
	return rc;
}

/* --- from other threads --------------------------------------------------------------------------------------- */

void follow_wake(struct follow *f)
{
	uint64_t one = 1;

	if (write(f->wake_fd, &one, sizeof one) < 0)
		return;
}

void follow_note(struct follow *f, const char *path, const char *text)
{
	pthread_mutex_lock(&f->lock);
	snprintf(f->stats.note, sizeof f->stats.note, "%.100s: %.150s", path, text);
	pthread_mutex_unlock(&f->lock);
}
