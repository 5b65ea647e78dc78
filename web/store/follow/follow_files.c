/* SPDX-License-Identifier: Apache-2.0 */
/* follow_files.c: the known files and their queues, and the status line. */
#include "web/store/follow/follow_inside.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/base/file.h"
#include "tracker/mem/mem.h"
#include "web/store/base/map.h"

#define RANGE_BYTES ((size_t)1 << 20)
#define GLANCE_S 0.5
#define PIECE_BYTES ((size_t)1 << 20) /* compared at a time */

static void unlink_follow_file(struct follow *f, struct follow_file *file)
{
	if (!file->turn)
		return;
	*file->back = file->next;
	if (file->next)
		file->next->back = file->back;
	else
		f->reading.lines[file->turn].end = file->back;
	file->turn = FOLLOW_NOWHERE;
}

void follow_enqueue(struct follow *f, struct follow_file *file, enum follow_turn turn)
{
	struct follow_line *l = &f->reading.lines[turn];

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
	enum follow_turn last = f->learned.knows_all ? FOLLOW_REST : FOLLOW_RECENT, turn = FOLLOW_URGENT;

	while (turn < last && !f->reading.lines[turn].first)
		turn++;
	return f->reading.lines[turn].first;
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
	while (f->reading.lines[FOLLOW_REFUSED].first)
		follow_enqueue(f, f->reading.lines[FOLLOW_REFUSED].first, FOLLOW_REST);
}

void follow_first_done(struct follow *f, struct follow_file *file)
{
	if (!file->first)
		return;
	file->first = false;
	pthread_mutex_lock(&f->shared.lock);
	if (--f->shared.first_left == 0 && f->shared.scanned)
		pthread_cond_broadcast(&f->shared.changed);
	pthread_mutex_unlock(&f->shared.lock);
}

struct follow_file *follow_file_of(struct follow *f, const char *path)
{
	struct follow_file *file = map_put(f->files, path, strlen(path));

	if (!file->f) {
		file->f = f;
		file->range = RANGE_BYTES;
		file->path = map_text(f->files, path);
	}
	return file;
}

void follow_glance_at(struct follow *f, struct follow_file *file, double for_s)
{
	double until_s = clock_mono_s() + for_s;

	if (file->glance_until_s == 0) {
		file->next_glance = f->reading.glances;
		f->reading.glances = file;
	}
	file->glance_until_s = until_s > file->glance_until_s ? until_s : file->glance_until_s;
}

void follow_glance(struct follow *f)
{
	struct follow_file **at = &f->reading.glances, *file;
	double now = clock_mono_s();

	f->reading.next_glance_s = now + GLANCE_S;
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

/* ---- on disk ---- */

static void join_root(const struct follow *f, const char *path, char ret[2 * PATH_MAX])
{
	snprintf(ret, 2 * PATH_MAX, "%s/%s", f->root, path);
}

int follow_open_file(const struct follow *f, const char *path)
{
	char full[2 * PATH_MAX];

	join_root(f, path, full);
	return open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

bool follow_stat_file(const struct follow *f, const char *path, struct stat *ret)
{
	char full[2 * PATH_MAX];

	join_root(f, path, full);
	return !stat(full, ret) && S_ISREG(ret->st_mode);
}

bool follow_same_bytes(int fd, int other_fd, uint64_t n)
{
	char *a = mem_alloc(PIECE_BYTES), *b = mem_alloc(PIECE_BYTES);
	bool same = true;

	for (uint64_t at = 0; same && at < n;) {
		size_t want = n - at < PIECE_BYTES ? (size_t)(n - at) : PIECE_BYTES;
		ssize_t got = file_read(fd, at, a, want);

		same = got == (ssize_t)want && file_read(other_fd, at, b, want) == got && !memcmp(a, b, want);
		at += want;
	}
	free(a);
	free(b);
	return same;
}

/* ---- any thread ---- */

void follow_wake(struct follow *f)
{
	uint64_t one = 1;

	if (write(f->wake_fd, &one, sizeof(one)) < 0)
		return;
}

void follow_note(struct follow *f, const char *path, const char *text)
{
	pthread_mutex_lock(&f->shared.lock);
	snprintf(f->shared.stats.note, sizeof(f->shared.stats.note), "%.100s: %.150s", path, text);
	pthread_mutex_unlock(&f->shared.lock);
}
