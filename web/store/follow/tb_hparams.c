/* SPDX-License-Identifier: Apache-2.0 */
/* tb_hparams.c: classifies the first records of event files in a folder, its parent and its siblings. */
#include "web/store/follow/origin.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/event/event.h"
#include "tracker/event/record.h"
#include "tracker/mem/mem.h"

#define HEAD_BYTES ((size_t)64 << 10) /* longer hparams are taken for a run */
#define SILENT_S 150		      /* PyTorch's writer buffers its first points for up to 120 s */
#define SETTLE_S 2		      /* a search writes its sessions one after the other */

/* What a file begins with; for a folder the largest value of its files counts. */
enum head {
	HEAD_NOTHING, /* nothing but the file version, if that */
	HEAD_BEGUN,   /* hparams that have not ended */
	HEAD_NOTE,    /* hparams that ended before anything else */
	HEAD_RUN,
	HEAD_OURS /* a journal, which names its run */
};

static enum head advance_head(enum head before, const struct event_item *item)
{
	switch (item->kind) {
	case EVENT_HEADER:
		return HEAD_OURS;
	case EVENT_FILE_VERSION:
	case EVENT_PARAM:
		return before;
	case EVENT_HPARAMS_START:
		return HEAD_BEGUN;
	case EVENT_HPARAMS_END:
		return before == HEAD_BEGUN ? HEAD_NOTE : HEAD_RUN;
	case EVENT_OTHER: /* a description of all trials */
		return event_text_equal(item->text, "hparams") ? HEAD_BEGUN : HEAD_RUN;
	default:
		return HEAD_RUN;
	}
}

static enum head classify_head(const void *bytes, size_t n)
{
	enum head head = HEAD_NOTHING;
	struct event_item item;
	struct record rec;
	struct event ev;
	size_t at = 0;

	while (head < HEAD_NOTE && record_next(bytes, n, &at, &rec) == RECORD_OK) {
		if (event_open(&ev, rec.payload, rec.payload_bytes))
			return HEAD_RUN;
		while (head < HEAD_NOTE && event_next(&ev, &item) > 0)
			head = advance_head(head, &item);
	}
	return head < HEAD_NOTE && n == HEAD_BYTES ? HEAD_RUN : head;
}

static enum head classify_file(int folder_fd, const char *name)
{
	int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char *bytes = fd < 0 ? NULL : mem_alloc(HEAD_BYTES);
	ssize_t n = bytes ? pread(fd, bytes, HEAD_BYTES, 0) : 0;
	enum head head = n > 0 ? classify_head(bytes, (size_t)n) : HEAD_NOTHING;

	free(bytes);
	if (fd >= 0)
		close(fd);
	return head;
}

/* -1: the folder has no event files. */
static int classify_folder(int at_fd, const char *name)
{
	int fd = openat(at_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC), head = -1, one;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	while (dir && head < HEAD_OURS && (e = readdir(dir)))
		if (strstr(e->d_name, "tfevents")) {
			one = (int)classify_file(fd, e->d_name);
			head = one > head ? one : head;
		}
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
	return head;
}

/* Returns true if another folder next to this one has a note. */
static bool has_sibling_note(int above_fd, const char *name)
{
	int fd = openat(above_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	bool found = false;

	while (dir && !found && (e = readdir(dir)))
		found = e->d_name[0] != '.' && e->d_type != DT_REG && strcmp(e->d_name, name) != 0 &&
			classify_folder(fd, e->d_name) == HEAD_NOTE;
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
	return found;
}

static bool is_young_folder(int above_fd, const char *name, double most_s)
{
	struct stat sb;

	return !fstatat(above_fd, name, &sb, 0) && clock_wall_s() - (double)sb.st_mtim.tv_sec < most_s;
}

/* name: the folder of the file, inside above_fd. The one note below a folder with event files is about their run, also
 * if they have no data; the notes of several folders are runs. */
static enum tb_hparams look_in_parent(int above_fd, const char *name, enum head head, bool wait)
{
	int above = classify_folder(above_fd, ".");

	if ((above != HEAD_RUN && above != HEAD_NOTHING) || has_sibling_note(above_fd, name))
		return TB_HPARAMS_NO;
	if (wait && is_young_folder(above_fd, name, head == HEAD_NOTE ? SETTLE_S : SILENT_S))
		return TB_HPARAMS_LATER;
	return head == HEAD_NOTE ? TB_HPARAMS_YES : TB_HPARAMS_NO;
}

enum tb_hparams tb_hparams_find(const char *root, const char *path, bool wait)
{
	const char *slash = strrchr(path, '/'), *first = strchr(path, '/'), *name;
	char folder[PATH_MAX], above[2 * PATH_MAX];
	enum tb_hparams answer = TB_HPARAMS_NO;
	enum head head;
	int fd;

	if (!slash)
		return TB_HPARAMS_NO;
	snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
	name = first == slash ? folder : strrchr(folder, '/') + 1;
	snprintf(above, sizeof(above), "%s/%.*s", root, (int)(name - folder), folder);
	fd = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return TB_HPARAMS_NO;
	head = (enum head)classify_file(fd, path + (name - folder));
	if (head == HEAD_BEGUN || head == HEAD_NOTE)
		answer = look_in_parent(fd, name, head, wait);
	close(fd);
	return answer;
}
