/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint_test.c: checkpoint folders: what is written can be read back; the writer may die or the disk may become
 * full at any system call: a folder with a checkpoint's name is always complete, and there is always one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trainer/weights/checkpoint.h"

enum { COUNT = 24 };

static char folder[256];

/* ---- system calls that fail ---- */

static int calls, fail_at; /* 0: never */
static bool dies;	   /* otherwise the call fails, and every later one that writes: the disk stays full */

static bool fails(void)
{
	calls++;
	if (!fail_at || calls < fail_at || (dies && calls > fail_at))
		return false;
	if (dies)
		_exit(77);
	errno = ENOSPC;
	return true;
}

#define WRAP(type, name, args, values)               \
	type __real_##name args;                     \
	type __wrap_##name args;                     \
	type __wrap_##name args                      \
	{                                            \
		return fails() ? -1 : __real_##name values; \
	}
WRAP(int, mkdir, (const char *path, mode_t mode), (path, mode))
WRAP(int, fsync, (int fd), (fd))
WRAP(int, rename, (const char *from, const char *to), (from, to))
WRAP(int, renameat2, (int a, const char *from, int b, const char *to, unsigned flags), (a, from, b, to, flags))
WRAP(ssize_t, write, (int fd, const void *bytes, size_t n), (fd, bytes, n))

/* Removing needs no space, but the process may die there. */
#define WRAP_REMOVE(name)                                 \
	int __real_##name(const char *path);              \
	int __wrap_##name(const char *path);              \
	int __wrap_##name(const char *path)               \
	{                                                 \
		return dies && fails() ? -1 : __real_##name(path); \
	}
WRAP_REMOVE(unlink)
WRAP_REMOVE(rmdir)

/* ---- a small run ---- */

static struct graph *small_graph(void)
{
	struct graph *g = graph_new(true);

	graph_tensor(g,
		     &(struct tensor){ .name = "w", .kind = TENSOR_PARAM, .dtype = DTYPE_F32,
				       .shape = SHAPE(2, 3, 1, 4) });
	graph_tensor(g,
		     &(struct tensor){ .name = "mean", .kind = TENSOR_STAT, .dtype = DTYPE_F64,
				       .shape = SHAPE(COUNT) });
	graph_tensor(g,
		     &(struct tensor){ .name = "w.momentum", .kind = TENSOR_MOMENT, .dtype = DTYPE_F32,
				       .shape = SHAPE(2, 3, 1, 4) });
	assert_false(graph_failed(g));
	return g;
}

static double value(const struct tensor *t, int i, double seed)
{
	return (t->id + 1) * 1000 + i + seed / 8;
}

static int get(void *user, const struct tensor *t, void *data, struct err *err)
{
	(void)err;
	for (int i = 0; i < COUNT; i++)
		if (t->dtype == DTYPE_F64)
			((double *)data)[i] = value(t, i, *(double *)user) / 3;
		else
			((float *)data)[i] = (float)value(t, i, *(double *)user);
	return 0;
}

/* user: the seed that the values must have. */
static int put(void *user, const struct tensor *t, const struct weights_part_of *part, struct err *err)
{
	const void *data = part->data;

	for (int i = 0; i < COUNT; i++) {
		double want = value(t, i, *(double *)user);
		double got = t->dtype == DTYPE_F64 ? ((const double *)data)[i] * 3 : ((const float *)data)[i];

		if (fabs(got - want) > 1e-9 * want)
			return err_set(err, ERR_CORRUPT, "%s[%d] is %g, not %g", t->name, i, got, want);
	}
	return 0;
}

static struct checkpoint_state state_of(int64_t step, int segment)
{
	struct checkpoint_state s = { .run_id = "0123456789abcdef0123456789abcdef",
				      .model = "small",
				      .segment = segment,
				      .world = 3,
				      .global_batch = 12,
				      .seed = (uint64_t)1 << 53,
				      .step = step,
				      .epoch = 2,
				      .in_epoch = 1,
				      .epoch_is_open = true,
				      .loss_sum = 0.1 + 0.2,
				      .samples = 24,
				      .has_best = true,
				      .best = -INFINITY,
				      .best_step = 4 };

	snprintf(s.value[0].name, sizeof(s.value[0].name), "loss_scale");
	s.value[0].value = 65536.5;
	return s;
}

static int write_one(int64_t step, int segment, double seed, struct err *err)
{
	struct graph *g = small_graph();
	struct checkpoint_state s = state_of(step, segment);
	const struct weights_access a = { .get = get, .user = &seed };
	const struct st_meta config = { "lr", "0.1" };
	int rc = checkpoint_write(&(struct checkpoint_write_opts){ .folder = folder,
								   .state = &s,
								   .config = &config,
								   .n_config = 1,
								   .graph = g,
								   .access = &a },
				  err);

	graph_free(g);
	return rc;
}

static void must_write(int64_t step, int segment, double seed)
{
	struct err err = ERR_INIT;

	if (write_one(step, segment, seed, &err))
		fail_msg("%s", err.text);
}

/* Returns 0 when the checkpoint is complete and its tensors have these values. */
static int look(int64_t step, double seed, struct checkpoint_state *ret, struct err *err)
{
	struct graph *g = small_graph();
	struct checkpoint *c = NULL;
	char path[300];
	int rc;

	snprintf(path, sizeof(path), "%s/step-%lld", folder, (long long)step);
	rc = checkpoint_open(&c, path, err);
	if (!rc)
		rc = checkpoint_verify(c, g, err);
	if (!rc)
		rc = checkpoint_load(c, g, &(struct weights_access){ .put = put, .user = &seed }, err);
	if (!rc && ret) {
		*ret = *checkpoint_state(c);
		assert_string_equal(checkpoint_config(c, "lr"), "0.1");
		assert_null(checkpoint_config(c, "wd"));
	}
	checkpoint_close(c);
	graph_free(g);
	return rc;
}

static int set_up(void **state)
{
	(void)state;
	calls = fail_at = 0;
	dies = false;
	snprintf(folder, sizeof(folder), "/tmp/dptrain-checkpoint-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[300];

	(void)state;
	fail_at = 0;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

/* ---- tests ---- */

static void reads_back(void **state)
{
	struct checkpoint_state s, want = state_of(7, 1);
	struct err err = ERR_INIT;

	(void)state;
	must_write(7, 1, 5);
	if (look(7, 5, &s, &err))
		fail_msg("%s", err.text);
	assert_memory_equal(&s.run_id, &want.run_id, sizeof(s.run_id));
	assert_true(s.step == 7 && s.epoch == 2 && s.in_epoch == 1 && s.segment == 1 && s.world == 3);
	assert_true(s.loss_sum == want.loss_sum && s.samples == 24 && s.epoch_is_open);
	assert_true(s.has_best && s.best == -INFINITY && s.best_step == 4 && s.seed == want.seed);
	assert_string_equal(s.value[0].name, "loss_scale");
	assert_true(s.value[0].value == 65536.5 && !s.value[1].name[0]);
	must_write(7, 2, 6); /* replaced by the same step */
	if (look(7, 6, &s, &err))
		fail_msg("%s", err.text);
	assert_int_equal(s.segment, 2);
}

static void newest_first(void **state)
{
	struct checkpoint_entry *list;
	struct err err = ERR_INIT;
	char path[300];
	size_t n;

	(void)state;
	must_write(10, 0, 1);
	must_write(20, 0, 1);
	must_write(12, 1, 1);
	snprintf(path, sizeof(path), "%s/step-3", folder);
	assert_int_equal(mkdir(path, 0777), 0);
	snprintf(path, sizeof(path), "%s/step-x", folder);
	assert_int_equal(mkdir(path, 0777), 0);
	if (checkpoint_list(&list, &n, folder, &err))
		fail_msg("%s", err.text);
	assert_int_equal(n, 4);
	assert_true(list[0].step == 3 && list[0].segment == -1);
	assert_true(list[1].step == 12 && list[2].step == 20 && list[3].step == 10);
	free(list);
	assert_int_equal(checkpoint_remove(folder, 20, &err), 0);
	assert_int_equal(look(20, 1, NULL, &err), ERR_USAGE);
}

static void damage(const char *file, long at, bool cut)
{
	char path[400], other = (char)0xa5;
	FILE *f;

	snprintf(path, sizeof(path), "%s/step-1/%s", folder, file);
	if (cut) {
		assert_int_equal(truncate(path, at), 0);
		return;
	}
	f = fopen(path, "r+b");
	assert_non_null(f);
	fseek(f, at, at < 0 ? SEEK_END : SEEK_SET);
	fwrite(&other, 1, 1, f);
	fclose(f);
}

static void damage_is_detected(void **state)
{
	static const struct {
		const char *file;
		long at;
		bool cut;
	} kinds[] = { { CHECKPOINT_MODEL, -5, false }, { CHECKPOINT_MODEL, 100, true },	 { CHECKPOINT_MODEL, 0, true },
		      { CHECKPOINT_OPTIMIZER, 4, false }, { CHECKPOINT_OPTIMIZER, 60, true },
		      { "state.json", 50, true }, { "state.json", 0, true },	  { "state.json", 3, false } };

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct err err = ERR_INIT;

		must_write(1, 0, 1);
		damage(kinds[i].file, kinds[i].at, kinds[i].cut);
		if (look(1, 1, NULL, &err) != ERR_USAGE || strchr(err.text, '\n') || !strstr(err.text, kinds[i].file))
			fail_msg("damage %zu: %d %s", i, err.code, err.text);
	}
}

static char *state_read(size_t *ret_n)
{
	char path[400], *text = malloc(10000);
	FILE *f;

	snprintf(path, sizeof(path), "%s/step-1/state.json", folder);
	f = fopen(path, "r");
	assert_true(f && text);
	*ret_n = fread(text, 1, 9999, f);
	text[*ret_n] = '\0';
	fclose(f);
	return text;
}

static void state_write(const char *text, size_t n)
{
	char path[400];
	FILE *f;

	snprintf(path, sizeof(path), "%s/step-1/state.json", folder);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, n, f), n);
	fclose(f);
}

/* Any changed digit in state.json is detected; a file without a checksum, as in earlier versions, is accepted. */
static void state_is_checked(void **state)
{
	struct err err = ERR_INIT;
	char *text, *own;
	size_t n;
	int digits = 0;

	(void)state;
	must_write(1, 0, 1);
	text = state_read(&n);
	own = strstr(text, ",\n \"crc32c\"");
	assert_non_null(own);
	for (size_t i = 0; i < n; i++) {
		char was = text[i];

		if (was < '0' || was > '9' || (text + i >= own && text + i < strchr(own, ':')))
			continue;
		err = (struct err)ERR_INIT;
		text[i] = was == '7' ? '6' : '7';
		state_write(text, n);
		if (look(1, 1, NULL, &err) != ERR_USAGE || strchr(err.text, '\n') || !strstr(err.text, "state.json"))
			fail_msg("changed digit at %zu: %d %s", i, err.code, err.text);
		text[i] = was;
		digits++;
	}
	assert_true(digits > 100);
	snprintf(own, (size_t)(text + 9999 - own), "\n}");
	state_write(text, strlen(text));
	err = (struct err)ERR_INIT;
	if (look(1, 1, NULL, &err))
		fail_msg("without a checksum: %s", err.text);
	free(text);
}

/* A run that saves step 2 in addition to step 1, replaces it, and removes step 1. */
static void save_some(void)
{
	struct err err = ERR_INIT;

	if (!write_one(2, 0, 2, &err) && !write_one(2, 1, 3, &err))
		checkpoint_remove(folder, 1, &err);
}

/* Each named checkpoint is complete; there is at least one; a clean-up leaves nothing else. Returns whether all was
 * done. */
static bool check_left(void)
{
	struct checkpoint_entry *list;
	struct err err = ERR_INIT;
	bool done = false;
	char command[400];
	size_t n;

	checkpoint_sweep(folder);
	assert_int_equal(checkpoint_list(&list, &n, folder, &err), 0);
	assert_true(n > 0);
	for (size_t i = 0; i < n; i++) {
		bool whole = list[i].step == 1 ? !look(1, 1, NULL, &err)
					       : !look(2, 2, NULL, &err) || !look(2, 3, NULL, &err);

		if (list[i].segment < 0 || !whole)
			fail_msg("call %d: step %lld: %s", fail_at, (long long)list[i].step, err.text);
		done |= n == 1 && list[i].step == 2 && list[i].segment == 1;
	}
	free(list);
	snprintf(command, sizeof(command), "test -z \"$(ls -A %s | grep -v '^step-')\"", folder);
	assert_int_equal(system(command), 0);
	return done;
}

static void at_every_call(bool death)
{
	bool done = false;
	int n;

	for (n = 1; !done && n < 200; n++) {
		int status;
		pid_t child;

		must_write(1, 0, 1);
		child = fork();
		if (child == 0) {
			calls = 0;
			fail_at = n;
			dies = death;
			save_some();
			_exit(0);
		}
		assert_true(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
		done = check_left() && WEXITSTATUS(status) == 0;
	}
	assert_true(done && n > 20);
}

static void death_at_every_call(void **state)
{
	(void)state;
	at_every_call(true);
}

static void full_disk_at_every_call(void **state)
{
	(void)state;
	at_every_call(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(reads_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(newest_first, set_up, tear_down),
		cmocka_unit_test_setup_teardown(damage_is_detected, set_up, tear_down),
		cmocka_unit_test_setup_teardown(state_is_checked, set_up, tear_down),
		cmocka_unit_test_setup_teardown(death_at_every_call, set_up, tear_down),
		cmocka_unit_test_setup_teardown(full_disk_at_every_call, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
