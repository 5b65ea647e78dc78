/* SPDX-License-Identifier: Apache-2.0 */
/* run_folder.c: finds the journals of a run id; creates folders; draws ids and derives names from them. */
#include "tracker/run/run_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracker/base/text.h"
#include "tracker/event/record.h"

/* ---- names ---- */

static const char *const adjectives[32] = {
	"amber",  "bold",  "brisk", "calm",   "clear", "crisp",	 "deep",  "eager", "early",  "fair",  "fresh",
	"gentle", "keen",  "light", "lively", "lucid", "mellow", "merry", "mild",  "nimble", "plain", "proud",
	"quick",  "quiet", "rapid", "silent", "solid", "steady", "sunny", "swift", "warm",   "wise",
};

static const char *const nouns[32] = {
	"alder", "badger", "beech",  "birch", "brook", "cedar", "comet", "crane",  "dune",  "falcon", "fern",
	"finch", "fjord",  "grove",  "heron", "iris",  "lake",	"larch", "lynx",   "maple", "marsh",  "meadow",
	"otter", "pine",   "plover", "raven", "ridge", "river", "robin", "spruce", "swan",  "willow",
};

int names_draw_id(char ret[NAMES_ID_BYTES])
{
	return text_random_hex(ret, (NAMES_ID_BYTES - 1) / 2) ? ERR_IO : 0;
}

bool names_is_id(const char *id)
{
	return text_is_hex(id, NAMES_ID_BYTES - 1, NAMES_ID_BYTES - 1);
}

void names_from_id(char ret[FILE_NAME_BYTES], const char *id)
{
	char digits[9] = "";
	unsigned long bits;

	memcpy(digits, id, 8);
	bits = strtoul(digits, NULL, 16);
	snprintf(ret, FILE_NAME_BYTES, "%s-%s-%lu", adjectives[bits & 31], nouns[bits >> 5 & 31], (bits >> 10) % 100);
}

void names_host(char ret[FILE_NAME_BYTES])
{
	char host[256] = "";

	if (gethostname(host, sizeof(host) - 1) || !host[0])
		snprintf(host, sizeof(host), "localhost");
	file_name_of(ret, host);
}

/* ---- folders ---- */

#define HEADER_BYTES_MAX 16384u
#define ID_DIGITS 8

/* Calls visit if the file at path is a journal of the run (NULL: of any run). */
static bool visit_journal_file(const char *path, const char *run_id, run_folder_visit *visit, void *user)
{
	unsigned char bytes[HEADER_BYTES_MAX];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));
	struct event ev;
	struct event_item item;
	struct record rec;
	struct stat st = { .st_size = 0 };
	size_t at = 0;

	if (fd >= 0) {
		if (fstat(fd, &st))
			n = -1;
		close(fd);
	}
	if (n <= 0 || record_next(bytes, (size_t)n, &at, &rec) != RECORD_OK ||
	    event_open(&ev, rec.payload, rec.payload_bytes) || event_next(&ev, &item) != 1 ||
	    item.kind != EVENT_HEADER || (run_id && !event_text_equal(ev.header.run_id, run_id)))
		return false;
	visit(user, &(struct journal_file){ path, (uint64_t)st.st_size, ev.wall_time, &ev.header });
	return true;
}

static bool is_journal_name(const char *name)
{
	size_t n = strlen(name);

	return strstr(name, "tfevents") || (n > 8 && !strcmp(name + n - 8, ".journal"));
}

bool run_folder_journals(const char *dir, const char *run_id, run_folder_visit *visit, void *user)
{
	char path[4096];
	DIR *d = opendir(dir);
	const struct dirent *e;
	bool found = false;

	while (d && (e = readdir(d)))
		if (is_journal_name(e->d_name) && file_join(path, sizeof(path), dir, e->d_name))
			found |= visit_journal_file(path, run_id, visit, user);
	if (d)
		closedir(d);
	return found;
}

struct name_scan {
	struct arena *arena;
	struct run_folder *folder;
};

static void read_journal_names(void *user, const struct journal_file *f)
{
	struct name_scan *l = user;

	if (f->header->segment > l->folder->newest_segment)
		l->folder->newest_segment = f->header->segment;
	l->folder->experiment =
		arena_printf(l->arena, "%.*s", (int)f->header->experiment.len, f->header->experiment.at);
	l->folder->run_name = arena_printf(l->arena, "%.*s", (int)f->header->run_name.len, f->header->run_name.at);
}

static bool scan_run_folder(const char *dir, const char *run_id, struct arena *arena, struct run_folder *ret)
{
	ret->newest_segment = -1;
	if (!run_folder_journals(dir, run_id, read_journal_names, &(struct name_scan){ arena, ret }))
		return false;
	ret->dir = arena_strdup(arena, dir);
	return true;
}

static bool scan_experiment(const char *dir, const char *run_id, struct arena *arena, struct run_folder *ret)
{
	char path[4096];
	DIR *d = opendir(dir);
	const struct dirent *e;
	bool found = false;

	while (d && !found && (e = readdir(d))) {
		size_t n = strlen(e->d_name);

		if (n <= ID_DIGITS || e->d_name[n - ID_DIGITS - 1] != '-' ||
		    strncmp(e->d_name + n - ID_DIGITS, run_id, ID_DIGITS) != 0)
			continue;
		if (file_join(path, sizeof(path), dir, e->d_name))
			found = scan_run_folder(path, run_id, arena, ret);
	}
	if (d)
		closedir(d);
	return found;
}

static int locate_run_folder(struct run_folder *ret, struct arena *arena, const struct run_folder_opts *opts,
			     struct err *err)
{
	char path[4096];
	DIR *d = opendir(opts->runs_dir);
	const struct dirent *e;
	bool found = false;

	while (d && !found && (e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		if (file_join(path, sizeof(path), opts->runs_dir, e->d_name))
			found = scan_experiment(path, opts->run_id, arena, ret);
	}
	if (d)
		closedir(d);
	if (!found)
		return err_set(err, ERR_NOENT, "no run %s below %s", opts->run_id, opts->runs_dir);
	if (!ret->dir || !ret->experiment || !ret->run_name)
		return err_nomem(err, NULL);
	return 0;
}

/* ---- the newest run ---- */

struct newest_search {
	const struct run_folder_opts *opts; /* run_name NULL: any name, in any experiment */
	char id[NAMES_ID_BYTES];	    /* of the current folder; "" if its run has another name */
	double started_s;		    /* start of that run's first journal */
	char best_id[NAMES_ID_BYTES];	    /* "": none found */
	char best_dir[4096];
	double best_s;
};

static void consider_journal(void *user, const struct journal_file *f)
{
	struct newest_search *n = user;

	if (n->opts->run_name && (!event_text_equal(f->header->run_name, n->opts->run_name) ||
				  !event_text_equal(f->header->experiment, n->opts->experiment)))
		return;
	if (!n->id[0] || f->started_s < n->started_s)
		n->started_s = f->started_s;
	snprintf(n->id, sizeof(n->id), "%.*s", (int)f->header->run_id.len, f->header->run_id.at);
}

/* Searches the folders in dir whose names begin with prefix. With a prefix, only names of a run's length; without one,
 * also `depth` levels below. */
static void find_newest(struct newest_search *n, const char *dir, const char *prefix, int depth)
{
	char path[4096];
	DIR *d = opendir(dir);
	const struct dirent *e;

	while (d && (e = readdir(d))) {
		if (e->d_name[0] == '.' || strncmp(e->d_name, prefix, strlen(prefix)) ||
		    (*prefix && strlen(e->d_name) != strlen(prefix) + ID_DIGITS) ||
		    !file_join(path, sizeof(path), dir, e->d_name))
			continue;
		n->id[0] = '\0';
		run_folder_journals(path, NULL, consider_journal, n);
		if (n->id[0] && (!n->best_id[0] || n->started_s > n->best_s)) {
			n->best_s = n->started_s;
			memcpy(n->best_id, n->id, sizeof(n->id));
			memcpy(n->best_dir, path, sizeof(path));
		} else if (!n->id[0] && depth > 0) {
			find_newest(n, path, prefix, depth - 1);
		}
	}
	if (d)
		closedir(d);
}

/* Finds the newest run of the name in its experiment, or, without a name, of all below runs_dir. */
static int find_latest(struct newest_search *n, const struct run_folder_opts *opts, struct err *err)
{
	char experiment[FILE_NAME_BYTES], name[FILE_NAME_BYTES], prefix[FILE_NAME_BYTES + 1];
	char dir[4096];

	*n = (struct newest_search){ .opts = opts };
	if (!opts->run_name) {
		find_newest(n, opts->runs_dir, "", 1);
		return n->best_id[0] ? 0 : err_set(err, ERR_NOENT, "no run in %.200s", opts->runs_dir);
	}
	file_name_of(experiment, opts->experiment);
	file_name_of(name, opts->run_name);
	snprintf(prefix, sizeof(prefix), "%s-", name);
	if (!file_join(dir, sizeof(dir), opts->runs_dir, experiment))
		return err_set(err, ERR_USAGE, "%.100s…: the path is too long", opts->runs_dir);
	find_newest(n, dir, prefix, 0);
	return n->best_id[0] ? 0 : err_set(err, ERR_NOENT, "no run named %.100s in %.200s", opts->run_name, dir);
}

int run_folder_find(struct run_folder *ret, char *ret_id, struct arena *arena, const struct run_folder_opts *opts,
		    struct err *err)
{
	struct run_folder f = { .newest_segment = -1 };
	struct newest_search n;
	int rc;

	if (opts->must_exist) {
		rc = locate_run_folder(&f, arena, opts, err);
		memmove(ret_id, opts->run_id, NAMES_ID_BYTES);
	} else {
		rc = find_latest(&n, opts, err);
		if (!rc &&
		    (!scan_run_folder(n.best_dir, n.best_id, arena, &f) || !f.dir || !f.experiment || !f.run_name))
			rc = err_nomem(err, NULL);
		memcpy(ret_id, n.best_id, NAMES_ID_BYTES);
	}
	if (!rc)
		*ret = f;
	return rc;
}

int run_folder_open(struct run_folder *ret, struct arena *arena, const struct run_folder_opts *opts, struct err *err)
{
	char experiment[FILE_NAME_BYTES], run_name[FILE_NAME_BYTES];
	struct run_folder f = { .newest_segment = -1 };
	int rc;

	if (opts->must_exist) {
		rc = locate_run_folder(&f, arena, opts, err);
		if (!rc)
			*ret = f;
		return rc;
	}
	file_name_of(experiment, opts->experiment);
	file_name_of(run_name, opts->run_name);
	f.dir = arena_printf(arena, "%s/%s/%s-%.8s", opts->runs_dir, experiment, run_name, opts->run_id);
	f.experiment = arena_strdup(arena, opts->experiment);
	f.run_name = arena_strdup(arena, opts->run_name);
	if (!f.dir || !f.experiment || !f.run_name)
		return err_nomem(err, NULL);
	rc = file_make_folders(f.dir, 0777, err);
	if (!rc)
		*ret = f;
	return rc;
}
