/* SPDX-License-Identifier: Apache-2.0 */
/* weights_test.c: a small graph's weights read from and written to files; the file of one batch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trainer/weights/batch_file.h"
#include "trainer/weights/weights.h"

enum { K = 4, C = 3, R = 2, S = 5, N_CONV = K * C * R * S, N_FC = 6, MAX = N_CONV };

static char path[64];

/* The tensors that the test writes to files: one value per position in the file's order. */
struct file_tensor {
	struct st_tensor t;
	double value[MAX];
};

struct file {
	struct file_tensor tensor[6];
	size_t n;
	unsigned char bytes[MAX * 8];
};

static uint16_t bf16_of(double v)
{
	float f = (float)v;
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return (uint16_t)(bits >> 16); /* the values used need no more bits */
}

static int fetch(void *user, size_t i, const void **ret, struct err *err)
{
	struct file *f = user;
	struct file_tensor *t = &f->tensor[i];

	(void)err;
	for (int k = 0; k < MAX; k++)
		switch (t->t.dtype) {
		case ST_F64: ((double *)f->bytes)[k] = t->value[k]; break;
		case ST_F32: ((float *)f->bytes)[k] = (float)t->value[k]; break;
		case ST_BF16: ((uint16_t *)f->bytes)[k] = bf16_of(t->value[k]); break;
		default: ((int64_t *)f->bytes)[k] = (int64_t)t->value[k]; break;
		}
	*ret = f->bytes;
	return 0;
}

static void add(struct file *f, const char *name, enum st_dtype type, int ndim, const int64_t *dim)
{
	struct file_tensor *t = &f->tensor[f->n];

	t->t = (struct st_tensor){ .name = name, .dtype = type, .ndim = ndim };
	memcpy(t->t.dim, dim, (size_t)ndim * sizeof(*dim));
	for (int k = 0; k < MAX; k++)
		t->value[k] = (double)(f->n * 1000) / 8 + k;
	f->n++;
}

static void write_file(struct file *f)
{
	struct st_tensor list[6];
	struct err err = ERR_INIT;

	for (size_t i = 0; i < f->n; i++)
		list[i] = f->tensor[i].t;
	if (safetensors_write(&(struct st_write_opts){ .path = path, .tensors = list, .n_tensors = f->n, .fetch = fetch,
						       .user = f },
			      &err))
		fail_msg("%s", err.text);
}

static struct file good_file(enum st_dtype type)
{
	struct file f = { .n = 0 };

	add(&f, "conv1.weight", type, 4, (int64_t[]){ K, C, R, S });
	add(&f, "bn1.running_mean", type, 1, (int64_t[]){ K });
	add(&f, "bn1.num_batches_tracked", ST_I64, 0, (int64_t[]){ 0 });
	add(&f, "fc.weight", type, 2, (int64_t[]){ 2, 3 });
	return f;
}

static struct graph *small_graph(enum dtype type)
{
	struct graph *g = graph_new(true);

	graph_tensor(g,
		     &(struct tensor){ .name = "conv1.weight", .kind = TENSOR_PARAM, .dtype = type,
				       .shape = SHAPE(K, R, S, C) });
	graph_tensor(g,
		     &(struct tensor){ .name = "bn1.running_mean", .kind = TENSOR_STAT, .dtype = type,
				       .shape = SHAPE(K) });
	graph_tensor(g,
		     &(struct tensor){ .name = "fc.weight", .kind = TENSOR_PARAM, .dtype = type,
				       .shape = SHAPE(2, 3) });
	graph_tensor(g,
		     &(struct tensor){ .name = "fc.weight.momentum", .kind = TENSOR_MOMENT, .dtype = type,
				       .shape = SHAPE(2, 3) });
	graph_tensor(g,
		     &(struct tensor){ .name = "x", .kind = TENSOR_ACT, .life = LIFE_MICRO, .dtype = type,
				       .shape = SHAPE(9) });
	assert_false(graph_failed(g));
	return g;
}

struct memory { /* of the graph's tensors by id */
	char bytes[8][MAX * 8];
	int puts;
};

static int put(void *user, const struct tensor *t, const struct weights_part_of *part, struct err *err)
{
	const size_t each = dtype_bytes(t->dtype);
	struct memory *m = user;

	(void)err;
	memcpy(m->bytes[t->id] + (size_t)part->begin * each, part->data, (size_t)(part->end - part->begin) * each);
	m->puts++;
	return 0;
}

static int get(void *user, const struct tensor *t, void *data, struct err *err)
{
	struct memory *m = user;

	(void)err;
	memcpy(data, m->bytes[t->id], tensor_bytes(t));
	return 0;
}

static double at(const struct memory *m, const struct tensor *t, int i)
{
	return t->dtype == DTYPE_F64 ? ((const double *)m->bytes[t->id])[i] : ((const float *)m->bytes[t->id])[i];
}

static void loads_every_type(void **state)
{
	static const enum st_dtype types[] = { ST_F64, ST_F32, ST_BF16 };

	(void)state;
	for (int i = 0; i < 6; i++) {
		struct file f = good_file(types[i / 2]);
		struct graph *g = small_graph(i % 2 ? DTYPE_F64 : DTYPE_F32);
		struct memory m = { .puts = 0 };
		struct err err = ERR_INIT;
		const struct tensor *t;

		write_file(&f);
		if (weights_load(g, &(struct weights_load_opts){ .path = path },
				 &(struct weights_access){ put, get, .user = &m }, &err))
			fail_msg("%s", err.text);
		assert_int_equal(m.puts, 3);
		t = graph_find(g, "conv1.weight");
		for (int k = 0; k < K; k++)
			for (int c = 0; c < C; c++)
				for (int r = 0; r < R; r++)
					for (int s = 0; s < S; s++)
						assert_true(at(&m, t, ((k * R + r) * S + s) * C + c) ==
							    f.tensor[0].value[((k * C + c) * R + r) * S + s]);
		t = graph_find(g, "fc.weight");
		for (int k = 0; k < N_FC; k++)
			assert_true(at(&m, t, k) == (types[i / 2] == ST_BF16 ? 375 + k - (375 + k) % 2 : 375 + k));
		graph_free(g);
	}
}

static void saves_what_it_loads(void **state)
{
	struct file f = good_file(ST_F64);
	struct graph *g = small_graph(DTYPE_F64);
	struct memory m = { .puts = 0 };
	struct weights_access a = { put, get, .user = &m };
	struct st_meta meta = { "model", "tiny" };
	struct safetensors *s = NULL;
	struct err err = ERR_INIT;
	double v[N_CONV];

	(void)state;
	write_file(&f);
	assert_int_equal(weights_load(g, &(struct weights_load_opts){ .path = path }, &a, &err), 0);
	assert_int_equal(weights_save(g, &(struct weights_save_opts){ .path = path, .meta = &meta, .n_meta = 1 }, &a,
				      &err), 0);
	assert_int_equal(safetensors_open(&s, path, &err), 0);
	assert_int_equal(safetensors_count(s), 3);
	assert_string_equal(safetensors_meta(s, "model"), "tiny");
	for (int i = 0; i < 4; i += i == 1 ? 2 : 1) {
		const struct st_tensor *t = safetensors_find(s, f.tensor[i].t.name);

		assert_int_equal(t->ndim, f.tensor[i].t.ndim);
		for (int d = 0; d < t->ndim; d++)
			assert_int_equal(t->dim[d], f.tensor[i].t.dim[d]);
		safetensors_f64(t, 0, t->count, v);
		for (int64_t k = 0; k < t->count; k++)
			assert_true(v[k] == f.tensor[i].value[k]);
	}
	safetensors_close(s);
	graph_free(g);
}

enum { LARGE_ROWS = 3000, LARGE_EACH = 1000 }; /* 12 MB */

struct large { /* memory of the tensors of one size by id, and the largest part put at once */
	float *value[2];
	size_t most_bytes;
};

static int put_large(void *user, const struct tensor *t, const struct weights_part_of *part, struct err *err)
{
	const size_t bytes = (size_t)(part->end - part->begin) * sizeof(float);
	struct large *m = user;

	(void)err;
	memcpy(m->value[t->id] + part->begin, part->data, bytes);
	m->most_bytes = bytes > m->most_bytes ? bytes : m->most_bytes;
	return 0;
}

static int get_large(void *user, const struct tensor *t, void *data, struct err *err)
{
	(void)user, (void)err;
	for (int64_t i = 0; i < shape_count(&t->shape); i++)
		((float *)data)[i] = (float)(i + t->id);
	return 0;
}

/* One in the order of the file, one transposed. */
static void large_tensors_are_loaded_in_parts(void **state)
{
	static const char *const names[] = { "transformer.wte.weight", "transformer.h.0.mlp.c_fc.weight" };
	const int64_t n = (int64_t)LARGE_ROWS * LARGE_EACH;
	struct graph *g = graph_new(true);
	struct large m = { .most_bytes = 0 };
	struct weights_access a = { put_large, get_large, .user = &m };
	struct err err = ERR_INIT;

	(void)state;
	for (int i = 0; i < 2; i++) {
		graph_tensor(g, &(struct tensor){ .name = names[i], .kind = TENSOR_PARAM, .dtype = DTYPE_F32,
						  .shape = SHAPE(LARGE_ROWS, LARGE_EACH) });
		m.value[i] = calloc((size_t)n, sizeof(float));
		assert_non_null(m.value[i]);
	}
	if (weights_save(g, &(struct weights_save_opts){ .path = path }, &a, &err) ||
	    weights_load(g, &(struct weights_load_opts){ .path = path }, &a, &err))
		fail_msg("%s", err.text);
	assert_in_range(m.most_bytes, 1 << 20, 8 << 20);
	for (int i = 0; i < 2; i++) {
		for (int64_t k = 0; k < n; k++)
			if (m.value[i][k] != (float)(k + i))
				fail_msg("%s[%lld] is %g", names[i], (long long)k, m.value[i][k]);
		free(m.value[i]);
	}
	graph_free(g);
}

static void refused(struct file *f, const char *words)
{
	struct graph *g = small_graph(DTYPE_F32);
	struct memory m = { .puts = 0 };
	struct err err = ERR_INIT;
	int rc;

	write_file(f);
	rc = weights_load(g, &(struct weights_load_opts){ .path = path },
			  &(struct weights_access){ put, get, .user = &m }, &err);
	if (rc != ERR_USAGE || m.puts || !strstr(err.text, words) || strchr(err.text, '\n'))
		fail_msg("code %d, %d put, says: %s\n  expected: %s", rc, m.puts, err.text, words);
	graph_free(g);
}

static void mismatches_are_named(void **state)
{
	struct file f = good_file(ST_F32);

	(void)state;
	f.tensor[0].t.name = "conv2.weight";
	refused(&f, "1 missing ('conv1.weight'), 1 unexpected ('conv2.weight')");
	f.tensor[3].t.name = "classifier\nweight";
	refused(&f, "2 missing (first 'conv1.weight'), 2 unexpected (first 'conv2.weight')");
	f = good_file(ST_F32);
	f.tensor[0].t.dim[1] = R; /* this program's order of dimensions */
	f.tensor[0].t.dim[2] = S;
	f.tensor[0].t.dim[3] = C;
	refused(&f, "1 of another shape ('conv1.weight'): file [4,2,5,3], model [4,3,2,5]");
	f = good_file(ST_F32);
	f.tensor[3].t.dtype = ST_I64;
	refused(&f, "1 not of a float type ('fc.weight')");
	f = good_file(ST_F32);
	add(&f, "fc.weight.momentum", ST_F32, 2, (int64_t[]){ 2, 3 });
	refused(&f, "1 unexpected ('fc.weight.momentum')");
}

static void batch_is_transposed(void **state)
{
	(void)state;
	for (int f64 = 0; f64 < 2; f64++) {
		struct file f = { .n = 0 };
		struct batch_file *b = NULL;
		struct err err = ERR_INIT;

		add(&f, "images", f64 ? ST_F64 : ST_F32, 4, (int64_t[]){ 2, 3, 4, 5 });
		add(&f, "labels", ST_I64, 1, (int64_t[]){ 2 });
		f.tensor[1].value[0] = 7;
		f.tensor[1].value[1] = 0;
		write_file(&f);
		if (batch_file_open(&b, path, &err))
			fail_msg("%s", err.text);
		assert_true(b->n == 2 && b->channels == 3 && b->height == 4 && b->width == 5 && b->classes == 8);
		assert_int_equal(b->dtype, f64 ? DTYPE_F64 : DTYPE_F32);
		assert_int_equal(b->labels[0], 7);
		for (int n = 0; n < 2; n++)
			for (int c = 0; c < 3; c++)
				for (int p = 0; p < 20; p++) {
					int ours = (n * 20 + p) * 3 + c;
					double v = f64 ? ((double *)b->images)[ours] : ((float *)b->images)[ours];

					assert_true(v == f.tensor[0].value[(n * 3 + c) * 20 + p]);
				}
		batch_file_close(b);
	}
}

static void bad_batches(void **state)
{
	static const struct {
		const char *name;
		enum st_dtype images, labels;
		int64_t n_images, n_labels;
		double label;
		const char *words;
	} cases[] = {
		{ "pictures", ST_F32, ST_I64, 2, 2, 0, "expected a tensor 'images' of F32 or F64 [N,C,H,W]" },
		{ "images", ST_BF16, ST_I64, 2, 2, 0, "a tensor 'images' of F32 or F64" },
		{ "images", ST_F32, ST_F32, 2, 2, 0, "expected a tensor 'labels' of I64 [N]" },
		{ "images", ST_F32, ST_I64, 2, 1, 0, "2 images, but 1 labels" },
		{ "images", ST_F32, ST_I64, 0, 0, 0, "are not a batch" },
		{ "images", ST_F32, ST_I64, 2, 2, -1, "label -1 of sample 1 is not a class" },
		{ "images", ST_F32, ST_I64, 2, 2, 3e9, "label 3000000000 of sample 1 is not a class" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct file f = { .n = 0 };
		struct batch_file *b = NULL;
		struct err err = ERR_INIT;

		add(&f, cases[i].name, cases[i].images, 4, (int64_t[]){ cases[i].n_images, 1, 2, 2 });
		add(&f, "labels", cases[i].labels, 1, (int64_t[]){ cases[i].n_labels });
		f.tensor[1].value[0] = 0;
		f.tensor[1].value[1] = cases[i].label;
		write_file(&f);
		assert_int_equal(batch_file_open(&b, path, &err), ERR_USAGE);
		assert_null(b);
		if (!strstr(err.text, cases[i].words))
			fail_msg("says: %s\n  expected: %s", err.text, cases[i].words);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loads_every_type),
		cmocka_unit_test(saves_what_it_loads),
		cmocka_unit_test(large_tensors_are_loaded_in_parts),
		cmocka_unit_test(mismatches_are_named),
		cmocka_unit_test(batch_is_transposed),
		cmocka_unit_test(bad_batches),
	};
	int rc;

	snprintf(path, sizeof(path), "weights_test.%ld", (long)getpid());
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return rc;
}
