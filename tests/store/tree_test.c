/* SPDX-License-Identifier: Apache-2.0 */
/* Scan of a folder: which files it finds, and in which order: level by level, newest folders first, in steps, without
 * loops, and with files created during the scan. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "web/store/follow/folder_tree.h"

struct fixture {
	char root[200];
	char found[4000]; /* paths, each followed by a space; new ones preceded by a + */
};

static void on_found(void *arg, const struct tree_file *f)
{
	struct fixture *x = arg;
	size_t n = strlen(x->found);

	snprintf(x->found + n, sizeof x->found - n, "%s%s%s ", f->scanned ? "" : "+", f->path, f->linked ? "@" : "");
}

static void path_of(const struct fixture *x, const char *name, char ret[400])
{
	snprintf(ret, 400, "%s/%s", x->root, name);
}

static void make_file(const struct fixture *x, const char *name)
{
	char path[400];
	int fd;

	path_of(x, name, path);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
}

static void make_folder(const struct fixture *x, const char *name)
{
	char path[400];

	path_of(x, name, path);
	assert_int_equal(mkdir(path, 0700), 0);
}

static void set_age(const struct fixture *x, const char *name, time_t seconds)
{
	struct timespec times[2] = { { .tv_sec = seconds }, { .tv_sec = seconds } };
	char path[400];

	path_of(x, name, path);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static int setup(void **state)
{
	struct fixture *x = calloc(1, sizeof *x);

	snprintf(x->root, sizeof x->root, "%.150s/dptrack-tree-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	*state = x;
	return mkdtemp(x->root) ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *x = *state;
	char command[300];
	int rc;

	snprintf(command, sizeof command, "rm -rf '%s'", x->root);
	rc = system(command);
	free(x);
	return rc;
}

static void newest_first(void **state)
{
	struct fixture *x = *state;
	struct tree *t;

	make_folder(x, "a");
	make_folder(x, "b");
	make_folder(x, "b/old");
	make_folder(x, "b/new");
	make_file(x, "a/2.journal");
	make_file(x, "a/10.journal");
	make_file(x, "a/ignored.txt");
	make_file(x, "b/old/x.tfevents.1");
	make_file(x, "b/new/y.tfevents.1");
	make_file(x, "dptrack.db");
	set_age(x, "b/old", 1000);
	set_age(x, "b/new", 3000);
	set_age(x, "a", 2000);
	set_age(x, "b", 4000);
	t = tree_open(&(struct tree_opts){ x->root, false, on_found, x });
	assert_int_equal(tree_scan(t, NULL), 0);
	assert_string_equal(x->found, "a/10.journal a/2.journal b/new/y.tfevents.1 b/old/x.tfevents.1 ");
	assert_int_equal(tree_folders(t), 5);
	tree_close(t);
}

static void link_loops_end(void **state)
{
	struct fixture *x = *state;
	char path[400];
	struct tree *t;

	make_folder(x, "a");
	make_file(x, "a/x.journal");
	path_of(x, "a/back", path);
	assert_int_equal(symlink("..", path), 0);
	path_of(x, "a/y.journal", path);
	assert_int_equal(symlink("x.journal", path), 0);
	path_of(x, "a/z.journal", path);
	assert_int_equal(symlink("nothing", path), 0);
	t = tree_open(&(struct tree_opts){ x->root, false, on_found, x });
	assert_int_equal(tree_scan(t, NULL), 0);
	assert_string_equal(x->found, "a/x.journal a/y.journal@ ");
	tree_close(t);
}

static void in_steps(void **state)
{
	struct fixture *x = *state;
	struct tree *t;
	char name[40];
	int i, rc, steps = 0;

	for (i = 0; i < 50; i++) {
		snprintf(name, sizeof name, "r%02d", i);
		make_folder(x, name);
		snprintf(name, sizeof name, "r%02d/x.journal", i);
		make_file(x, name);
	}
	t = tree_open(&(struct tree_opts){ x->root, false, on_found, x });
	tree_scan_begin(t);
	assert_int_equal(tree_step(t, -1, NULL), 1); /* no time left: one folder, the root */
	assert_string_equal(x->found, "");
	while ((rc = tree_step(t, 1e-9, NULL)) > 0 && steps < 100000)
		steps++;
	assert_int_equal(rc, 0);
	assert_int_equal(tree_folders(t), 51);
	assert_int_equal(strlen(x->found), 50 * strlen("r00/x.journal "));
	tree_close(t);
}

static void files_created_during_scan(void **state)
{
	struct fixture *x = *state;
	double until_s = clock_mono_s() + 30;
	struct tree *t;

	make_folder(x, "a");
	make_file(x, "a/x.journal");
	t = tree_open(&(struct tree_opts){ x->root, true, on_found, x });
	if (!tree_watching(t)) {
		tree_close(t);
		skip(); /* no inotify on this system */
	}
	tree_watch_file(t, "a/x.journal");
	make_file(x, "a/x.journal"); /* grows before any scan */
	while (!strstr(x->found, "+a/x.journal ") && clock_mono_s() < until_s)
		tree_events(t);
	assert_non_null(strstr(x->found, "+a/x.journal "));
	assert_int_equal(tree_scan(t, NULL), 0);
	make_folder(x, "new");
	make_folder(x, "new/below");
	make_file(x, "new/below/y.journal");
	while (!strstr(x->found, "+new/below/y.journal ") && clock_mono_s() < until_s) {
		tree_events(t);
		tree_step(t, 1, NULL);
	}
	assert_non_null(strstr(x->found, "+new/below/y.journal "));
	tree_close(t);
}

/* Growth of files is noticed in a folder that a scan knows, but has not listed yet. */
static void watched_before_it_is_listed(void **state)
{
	struct fixture *x = *state;
	double until_s = clock_mono_s() + 30;
	struct tree *t;
	int i;

	make_folder(x, "exp");
	make_folder(x, "exp/run");
	make_file(x, "exp/run/x.journal");
	t = tree_open(&(struct tree_opts){ x->root, true, on_found, x });
	if (!tree_watching(t)) {
		tree_close(t);
		skip(); /* no inotify on this system */
	}
	tree_scan_begin(t);
	for (i = 0; i < 4; i++) /* no time left: one listing or entry per step */
		assert_int_equal(tree_step(t, -1, NULL), 1);
	assert_int_equal(tree_folders(t), 2);
	make_file(x, "exp/run/x.journal");
	while (!*x->found && clock_mono_s() < until_s)
		tree_events(t);
	assert_memory_equal(x->found, "+exp/run/x.journal ", 19);
	tree_close(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(newest_first, setup, teardown),
		cmocka_unit_test_setup_teardown(link_loops_end, setup, teardown),
		cmocka_unit_test_setup_teardown(in_steps, setup, teardown),
		cmocka_unit_test_setup_teardown(files_created_during_scan, setup, teardown),
		cmocka_unit_test_setup_teardown(watched_before_it_is_listed, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
