/* SPDX-License-Identifier: Apache-2.0 */
/* input_nomem_test.c: configuration, data and weights when the n-th allocation fails, for every n: the line of
 * tracker/mem and exit status 1, an error with a text, or success, never a crash (nor, under the address sanitizer, a
 * leak). Linked with --wrap for malloc and related functions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "tests/data/idx_make.h"
#include "tracker/mem/mem.h"
#include "trainer/config/config.h"
#include "trainer/data/formats/formats.h"
#include "trainer/data/formats/synthetic.h"
#include "trainer/data/loader/loader.h"
#include "trainer/weights/batch_file.h"
#include "trainer/weights/weights.h"

#define ALLOCATIONS_MAX 5000

static long left = -1; /* allocations until one fails; negative: never */
static char dir[64], weights_path[80], batch_path[80], config_path[80];

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t each);
void *__real_realloc(void *p, size_t n);
char *__real_strdup(const char *text);
int __real_posix_memalign(void **ret, size_t align, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t each);
void *__wrap_realloc(void *p, size_t n);
char *__wrap_strdup(const char *text);
int __wrap_posix_memalign(void **ret, size_t align, size_t n);

static int fails(void)
{
	if (left < 0)
		return 0;
	if (left-- > 0)
		return 0;
	left = -1;
	errno = ENOMEM;
	return 1;
}

void *__wrap_malloc(size_t n)
{
	return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t each)
{
	return fails() ? NULL : __real_calloc(n, each);
}

void *__wrap_realloc(void *p, size_t n)
{
	return fails() ? NULL : __real_realloc(p, n);
}

char *__wrap_strdup(const char *text)
{
	return fails() ? NULL : __real_strdup(text);
}

int __wrap_posix_memalign(void **ret, size_t align, size_t n)
{
	return fails() ? ENOMEM : __real_posix_memalign(ret, align, n);
}

/* Exit statuses of an operation in a process of its own; 1 is that of mem_exhausted. */
enum ending { ENDED_WELL, ENDED_BY_MEM, ENDED_UNREACHED, ENDED_WITH_ERROR, ENDED_WITHOUT_TEXT, ENDED_FAILING };

static _Noreturn void end_with_failure(int (*operation)(struct err *err), long n)
{
	struct err err = ERR_INIT;
	int rc;
	bool reached;

	left = n;
	rc = operation(&err);
	reached = left < 0;
	left = -1;
	if (!reached)
		_exit(rc ? ENDED_FAILING : ENDED_UNREACHED);
	if (rc && (!err.text[0] || err.code != rc))
		_exit(ENDED_WITHOUT_TEXT);
	exit(rc ? ENDED_WITH_ERROR : ENDED_WELL); /* with the sanitizer's search for leaks */
}

/* Runs the operation with its n-th allocation failing; said: what it printed. */
static int run_with_failure(int (*operation)(struct err *err), long n, char said[4096])
{
	size_t used = 0;
	ssize_t got;
	int to[2], status;
	pid_t child;

	fflush(NULL);
	assert_int_equal(pipe(to), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		dup2(to[1], STDERR_FILENO);
		close(to[0]);
		close(to[1]);
		end_with_failure(operation, n);
	}
	close(to[1]);
	while ((got = read(to[0], said + used, 4095 - used)) > 0)
		used += (size_t)got;
	said[used] = '\0';
	close(to[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Runs the operation with the first, second, … allocation failing until it succeeds; returns the number of failures. */
static int each_allocation(int (*operation)(struct err *err), const char *what)
{
	char said[4096];

	for (long n = 0, failures = 0; n < ALLOCATIONS_MAX; n++) {
		int ending = run_with_failure(operation, n, said);

		if (ending == ENDED_UNREACHED)
			return (int)failures;
		if (ending == ENDED_BY_MEM && !strstr(said, "out of memory: cannot allocate "))
			fail_msg("%s: allocation %ld failed: exit 1: %s", what, n, said);
		if (ending != ENDED_WELL && ending != ENDED_BY_MEM && ending != ENDED_WITH_ERROR)
			fail_msg("%s: allocation %ld failed: ending %d: %s", what, n, ending, said);
		failures += ending != ENDED_WELL;
	}
	fail_msg("%s never succeeds", what);
	return 0;
}

static struct buf printed; /* by an undisturbed configuration */

static int configure(struct err *err)
{
	char *words[] = { "dptrain", "--data-path", "d", "--bf16", "--experiment", "e", "--config", config_path };
	struct run_config *cfg = NULL;
	struct buf out;
	int rc = config_parse(&cfg, 8, words, err);

	if (!rc)
		rc = config_resolve(cfg, &(struct config_world){ .world = 2 }, err);
	buf_init(&out, 1 << 16);
	for (int json = 0; json < 2 && !rc; json++)
		config_print(cfg, &(struct config_print_opts){ .json = json }, &out);
	if (!rc && buf_failed(&out)) /* Jansson's memory */
		rc = err_set(err, ERR_NOMEM, "print");
	if (!rc && !printed.len)
		buf_add(&printed, out.data, out.len);
	if (!rc && (out.len != printed.len || memcmp(out.data, printed.data, out.len)))
		abort(); /* a partial one without an error */
	buf_done(&out);
	config_free(cfg);
	return rc;
}

static int load(struct err *err)
{
	struct dataset *d = NULL;
	struct loader *l = NULL;
	struct loader_batch b;
	int rc = formats_open(&d, &(struct dataset_opts){ .path = dir }, err);

	if (!rc)
		rc = loader_open(&l, &(struct loader_opts){ .dataset = d, .rank = 0, .dtype = DTYPE_F32, .augment = 3,
							    .epochs = 1,
			.sampler = { .n_samples = 10, .global_batch = 4, .world = 1, .order = SAMPLER_TABLE } }, err);
	while (!rc && (rc = loader_next(l, &b, err)) > 0) {
		loader_release(l, &b);
		rc = 0;
	}
	loader_close(l);
	dataset_close(d);
	return rc;
}

static int synthesize(struct err *err)
{
	struct dataset *d = NULL;
	int rc = dataset_synthetic_open(&d, &(struct dataset_synthetic_opts){ 4, 4, 1, 3, 1 }, err);

	dataset_close(d);
	return rc;
}

static int put(void *user, const struct tensor *t, const struct weights_part_of *part, struct err *err)
{
	(void)user, (void)t, (void)part, (void)err;
	return 0;
}

static int get(void *user, const struct tensor *t, void *data, struct err *err)
{
	(void)user, (void)err;
	memset(data, 0, tensor_bytes(t));
	return 0;
}

static struct graph *graph;

static int keep_weights(struct err *err)
{
	struct weights_access a = { put, get, .user = NULL };
	struct st_meta meta = { "k", "v" };
	int rc = weights_save(graph, &(struct weights_save_opts){ .path = weights_path, .meta = &meta, .n_meta = 1 },
			      &a, err);

	return rc ? rc : weights_load(graph, &(struct weights_load_opts){ .path = weights_path }, &a, err);
}

static int fetch(void *user, size_t i, const void **ret, struct err *err)
{
	static const double images[8];
	static const int64_t labels[2];

	(void)user, (void)err;
	*ret = i ? (const void *)labels : images;
	return 0;
}

static int read_batch(struct err *err)
{
	struct batch_file *b = NULL;
	int rc = batch_file_open(&b, batch_path, err);

	batch_file_close(b);
	return rc;
}

static void configuration(void **state)
{
	(void)state;
	buf_init(&printed, 1 << 16);
	assert_int_equal(configure(NULL), 0);
	assert_true(each_allocation(configure, "configuration") > 5);
	buf_done(&printed);
}

static void data(void **state)
{
	(void)state;
	for (int gzip = 0; gzip < 2; gzip++) {
		idx_make(&(struct idx_spec){ dir, { 10, 3 }, 4, 4, 1, gzip });
		assert_true(each_allocation(load, "loading") > 5);
		idx_clean(dir);
	}
	assert_int_equal(each_allocation(synthesize, "random data"), 4);
}

static void weights(void **state)
{
	struct st_tensor batch[] = { { .name = "images", .dtype = ST_F64, .ndim = 4, .dim = { 2, 1, 2, 2 } },
				     { .name = "labels", .dtype = ST_I64, .ndim = 1, .dim = { 2 } } };

	(void)state;
	graph = graph_new(true);
	graph_tensor(graph,
		     &(struct tensor){ .name = "w", .kind = TENSOR_PARAM, .dtype = DTYPE_F32,
				       .shape = SHAPE(2, 3, 3, 1) });
	graph_tensor(graph,
		     &(struct tensor){ .name = "b", .kind = TENSOR_STAT, .dtype = DTYPE_F32, .shape = SHAPE(2) });
	assert_true(each_allocation(keep_weights, "weights") > 10);
	graph_free(graph);
	assert_int_equal(safetensors_write(&(struct st_write_opts){ .path = batch_path, .tensors = batch,
								    .n_tensors = 2, .fetch = fetch }, NULL), 0);
	assert_true(each_allocation(read_batch, "batch") > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(configuration),
		cmocka_unit_test(data),
		cmocka_unit_test(weights),
	};
	FILE *f;
	int rc;

	mem_init();
	json_set_alloc_funcs(__wrap_malloc, free);
	snprintf(dir, sizeof(dir), "input_nomem_test.%ld", (long)getpid());
	snprintf(weights_path, sizeof(weights_path), "%s.weights", dir);
	snprintf(batch_path, sizeof(batch_path), "%s.batch", dir);
	snprintf(config_path, sizeof(config_path), "%s.json", dir);
	f = fopen(config_path, "w");
	if (!f)
		return 1;
	fputs("{\"lr\": 0.5, \"model\": \"resnet20\", \"batch_size\": 8}\n", f);
	fclose(f);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(weights_path);
	unlink(batch_path);
	unlink(config_path);
	return rc;
}
