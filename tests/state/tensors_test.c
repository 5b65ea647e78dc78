/* SPDX-License-Identifier: Apache-2.0 */
/* tensors_test.c: artificial strategies whose ranks hold only ranges of each tensor: drawing, writing, reading and
 * restoring give the same values as one rank that holds everything, bit by bit, and nothing is written outside a
 * rank's own range. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tracker/base/file.h"
#include "trainer/data/formats/synthetic.h"
#include "trainer/state/initial.h"
#include "trainer/state/tensor_files.h"
#include "trainer/state/tensors.h"

#define CHECK(x)                                                                        \
	do {                                                                            \
		if (!(x)) {                                                             \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #x, err.text); \
			exit(1);                                                        \
		}                                                                       \
	} while (0)

static struct run_config cfg = { .seed = 7, .model = "gpt2-124m" }, other_cfg = { .seed = 8, .model = "gpt2-124m" };
static char dir[64];

static int rewrite_nothing(struct graph *g, const struct strategy_opts *o, struct err *err)
{
	(void)g, (void)o, (void)err;
	return 0;
}

/* Each rank holds its part, in order; of short tensors some ranks hold nothing. */
static struct strategy_part in_order(const struct tensor *t, const struct strategy_opts *o, int rank)
{
	int64_t n = shape_count(&t->shape);

	return (struct strategy_part){ n * rank / o->world, n * (rank + 1) / o->world };
}

/* Rank 0 holds nothing, the last one everything, those between them the middle. */
static struct strategy_part elsewhere(const struct tensor *t, const struct strategy_opts *o, int rank)
{
	int64_t n = shape_count(&t->shape);

	if (rank == 0)
		return (struct strategy_part){ 0, 0 };
	return rank == o->world - 1 ? (struct strategy_part){ 0, n } : (struct strategy_part){ n / 4, n / 2 };
}

static const struct strategy whole = { .rewrite = rewrite_nothing };
static const struct strategy parts[] = { { .rewrite = rewrite_nothing, .holds = in_order },
					 { .rewrite = rewrite_nothing, .holds = elsewhere } };

struct held { /* by one of several ranks, or by a single rank */
	struct workload workload;
	struct prepared prepared;
	struct tensors tensors;
};

static void open_held(struct held *h, const struct strategy *strategy, struct comm *c)
{
	struct program_opts o = {
		.model = &model_gpt2_124m,
		.config = { .layers = 1, .heads = 2, .width = 6, .context = 8, .seq_len = 8, .vocab = 11 },
		.precision = { DTYPE_F64, DTYPE_F64, NULL },
		.backend = &backend_ref,
		.strategy = strategy,
		.sharing = { .rank = c->rank, .world = c->world },
		.optimizer = { .kind = OPTIMIZER_adamw, .beta1 = 0.9, .beta2 = 0.9, .eps = 1e-8 }
	};
	const struct prepare_shapes shapes = { .train = { { .size = 2, .last = true } },
					       .n_train = 1,
					       .snapshot = true };
	struct err err = ERR_INIT;

	CHECK(backend_ref.open(&(struct backend_opts){ .threads = 1 }, &o.module, &err) == 0);
	CHECK(prepare_programs(&h->prepared, &o, &shapes, &err) == 0);
	CHECK(prepare_memory(&h->prepared, &err) == 0);
	CHECK(dataset_tokens_open(&h->workload.data,
				  &(struct dataset_tokens_opts){ .path = "made", .seq_len = 8, .vocab = 11, .seed = 1 },
				  &err) == 0);
	h->workload.model = o.model;
	h->workload.config = o.config;
	h->tensors = (struct tensors){ .prepared = &h->prepared, .comm = c };
}

static void close_held(struct held *h)
{
	void *module = h->prepared.opts.module;

	prepare_done(&h->prepared);
	workload_close(&h->workload);
	if (backend_ref.close)
		backend_ref.close(module);
}

/* On rank 0, the others in tensors_help: all ranks together hold the same as `want` holds alone. */
static void same_as(const struct held *h, const struct held *want)
{
	int at = 0;
	struct err err = ERR_INIT;
	const struct tensor *t;
	int n = 0;

	while ((t = prepared_next(&h->prepared, &at))) {
		const struct tensor *alone = prepared_own(&want->prepared, t->name);
		unsigned char *got = malloc(tensors_bytes(t) + 1);
		const int64_t half = shape_count(&t->shape) / 2;
		const size_t begin = (size_t)half * dtype_bytes(t->dtype);

		CHECK(tensors_get(&h->tensors, t, tensors_all(t), got, &err) == 0);
		CHECK(memcmp(got, prepared_address(&want->prepared, alone), tensors_bytes(t)) == 0);
		memset(got, 0xff, tensors_bytes(t));
		CHECK(tensors_get(&h->tensors, t, (struct strategy_part){ half, shape_count(&t->shape) }, got + begin,
				  &err) == 0);
		CHECK(memcmp(got + begin, (char *)prepared_address(&want->prepared, alone) + begin,
			     tensors_bytes(t) - begin) == 0);
		for (size_t i = 0; i < begin; i++)
			CHECK(got[i] == 0xff);
		free(got);
		n++;
	}
	CHECK(n > 20);
	CHECK(tensors_helped(&h->tensors, 0, &err) == 0);
}

static void compare(const struct held *h, const struct held *want)
{
	struct err err = ERR_INIT;

	if (h->tensors.comm->rank == 0)
		same_as(h, want);
	else
		CHECK(tensors_help(&h->tensors, &err) == 0);
}

/* Memory after the part of a tensor that this rank holds is unchanged since its allocation: zero. */
static void expect_rest_is_zero(const struct held *h)
{
	int at = 0;
	struct err err = ERR_INIT;
	const struct tensor *t;

	while ((t = prepared_next(&h->prepared, &at))) {
		const struct strategy_part mine = tensors_held(&h->tensors, t, h->tensors.comm->rank);
		const unsigned char *memory = prepared_address(&h->prepared, prepared_own(&h->prepared, t->name));

		for (size_t i = (size_t)(mine.end - mine.begin) * dtype_bytes(t->dtype); i < tensors_bytes(t); i++)
			CHECK(memory[i] == 0);
	}
}

static void same_files(const char *a, const char *b)
{
	struct file_map x, y;
	struct err err = ERR_INIT;

	CHECK(file_map_open(&x, a, &err) == 0 && file_map_open(&y, b, &err) == 0);
	CHECK(x.n > 1000 && x.n == y.n && !memcmp(x.bytes, y.bytes, x.n));
	file_map_close(&x);
	file_map_close(&y);
}

static const char *path_of(char *ret, size_t n, const char *name)
{
	snprintf(ret, n, "%s/%s.safetensors", dir, name);
	return ret;
}

static void save(const struct held *h, const char *path)
{
	const struct files_weights w = { &h->tensors, &h->workload, &cfg };
	struct err err = ERR_INIT;

	CHECK(files_save_weights(&w, path, &err) == 0);
}

/* Everything at once: also the optimiser's state, which is not in weights files. */
static void give_all(const struct held *h, const struct held *from)
{
	int at = 0;
	struct err err = ERR_INIT;
	const struct tensor *t;

	if (h->tensors.comm->rank > 0) {
		CHECK(tensors_follow(&h->tensors, &err) == 0);
		return;
	}
	while ((t = prepared_next(&h->prepared, &at))) {
		const char *data = prepared_address(&from->prepared, prepared_own(&from->prepared, t->name));
		const struct strategy_part all = tensors_all(t);
		const int64_t cut = (all.begin + 2 * all.end) / 3;

		CHECK(tensors_give(&h->tensors, t, (struct strategy_part){ all.begin, cut }, data, &err) == 0);
		CHECK(tensors_give(&h->tensors, t, (struct strategy_part){ cut, all.end },
				   data + (size_t)cut * dtype_bytes(t->dtype), &err) == 0);
	}
	CHECK(tensors_end(&h->tensors, NULL, &err) == 0);
}

/* A snapshot contains the values at the time it was taken, even when the tensors change later. */
static void snapshot(const struct held *h, const struct held *want, const struct held *later)
{
	struct tensors copy;
	struct err err = ERR_INIT;

	CHECK(snapshot_take(&h->tensors, &err) == 0);
	give_all(h, later);
	copy = snapshot_tensors(&h->tensors, h->tensors.comm);
	compare(&(struct held){ .prepared = h->prepared, .tensors = copy }, want);
	compare(h, later);
}

/* A failure of rank 0 while it distributes values is reported to all ranks. */
static void failure_is_reported(const struct held *h)
{
	const struct err failure = { .code = ERR_CORRUPT, .text = "the file ended" };
	struct err err = ERR_INIT;

	if (h->tensors.comm->rank == 0)
		CHECK(tensors_end(&h->tensors, &failure, &err) == 0);
	else
		CHECK(tensors_follow(&h->tensors, &err) == ERR_CORRUPT && !strcmp(err.text, failure.text));
}

static void rank_main(struct comm *c, const struct strategy *strategy)
{
	char one[128], many[128];
	struct held alone = { .workload = { .data = NULL } }, other = alone, mine = alone;
	struct comm *self;
	struct err err = ERR_INIT;

	self = comm_self_new();
	open_held(&alone, &whole, self);
	open_held(&other, &whole, self);
	open_held(&mine, strategy, c);
	CHECK(draw_values(&alone.tensors, &cfg, alone.workload.model, &err) == 0);
	CHECK(draw_values(&other.tensors, &other_cfg, other.workload.model, &err) == 0);
	CHECK(draw_values(&mine.tensors, &cfg, mine.workload.model, &err) == 0);
	compare(&mine, &alone);
	expect_rest_is_zero(&mine);
	if (c->rank == 0)
		save(&alone, path_of(one, sizeof(one), "one"));
	save(&mine, path_of(many, sizeof(many), "many"));
	if (c->rank == 0)
		same_files(one, many);
	give_all(&mine, &other);
	compare(&mine, &other);
	snapshot(&mine, &other, &alone);
	expect_rest_is_zero(&mine);
	CHECK(c->ops->barrier(c, &err) == 0);
	CHECK(files_load_weights(&mine.tensors, &(struct weights_load_opts){ .path = many }, &err) == 0);
	CHECK(files_load_weights(&other.tensors, &(struct weights_load_opts){ .path = many }, &err) == 0);
	compare(&mine, &other);
	expect_rest_is_zero(&mine);
	failure_is_reported(&mine);
	close_held(&mine);
	close_held(&other);
	close_held(&alone);
	self->ops->close(self);
}

static void run_world(int world, const struct strategy *strategy)
{
	struct err err = ERR_INIT;
	pid_t pid[4];
	int fd, status;

	assert_int_equal(comm_shm_make(&fd, world, &err), 0);
	for (int r = 0; r < world; r++) {
		pid[r] = fork();
		if (pid[r] == 0) {
			struct comm_shm_opts o = { .fd = fd, .rank = r, .world = world, .timeout_s = 20 };
			struct comm *c;

			CHECK(comm_shm_open(&c, &o, &err) == 0);
			rank_main(c, strategy);
			c->ops->close(c);
			exit(0);
		}
	}
	for (int r = 0; r < world; r++) {
		assert_int_equal(waitpid(pid[r], &status, 0), pid[r]);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	close(fd);
}

static void ranges_on_ranks(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		for (int world = 2; world <= 3; world++)
			run_world(world, &parts[i]);
}

static void everything_on_ranks(void **state)
{
	(void)state;
	run_world(2, &whole);
}

static void one_rank(void **state)
{
	(void)state;
	run_world(1, &whole);
	run_world(1, &parts[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_on_ranks),
		cmocka_unit_test(everything_on_ranks),
		cmocka_unit_test(one_rank),
	};
	char command[100];
	int rc;

	snprintf(dir, sizeof(dir), "/tmp/tensors-test-XXXXXX");
	if (!mkdtemp(dir))
		return 1;
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command) ? 1 : rc;
}
