/* SPDX-License-Identifier: Apache-2.0 */
/* collectives.c: exact sums and copies. */
#include "tests/comm/collectives.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "trainer/graph/reduction_tree.h"

/* Value of element i at rank r: small enough for exact sums of 8 ranks in bf16 (8 bits of mantissa). */
static int value(int r, size_t i)
{
	return (int)((i * 7 + (size_t)r * 3) % 15) - 7;
}

static void put(void *data, enum dtype t, size_t i, int v)
{
	union {
		float f;
		uint32_t u;
	} x = { .f = (float)v };

	if (t == DTYPE_F64)
		((double *)data)[i] = v;
	else if (t == DTYPE_F32)
		((float *)data)[i] = (float)v;
	else if (t == DTYPE_I64)
		((int64_t *)data)[i] = v;
	else
		((uint16_t *)data)[i] = (uint16_t)(x.u >> 16);
}

static double get(const void *data, enum dtype t, size_t i)
{
	union {
		uint32_t u;
		float f;
	} x;

	if (t == DTYPE_F64)
		return ((const double *)data)[i];
	if (t == DTYPE_F32)
		return ((const float *)data)[i];
	if (t == DTYPE_I64)
		return (double)((const int64_t *)data)[i];
	x.u = (uint32_t)((const uint16_t *)data)[i] << 16;
	return x.f;
}

static int expected_sum(int world, size_t i)
{
	int sum = 0;

	for (int r = 0; r < world; r++)
		sum += value(r, i);
	return sum;
}

static int check_allreduce(struct comm *c, void *data, enum dtype t, size_t n)
{
	struct err err = ERR_INIT;

	for (size_t i = 0; i < n; i++)
		put(data, t, i, value(c->rank, i));
	if (c->ops->allreduce(c, data, (int64_t)n, t, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	for (size_t i = 0; i < n; i++)
		if (get(data, t, i) != expected_sum(c->world, i)) {
			fprintf(stderr, "rank %d %s n %zu at %zu: %g, not %d\n", c->rank, dtype_name(t), n, i,
				get(data, t, i), expected_sum(c->world, i));
			return 1;
		}
	return 0;
}

int collectives_allreduce(struct comm *c)
{
	static const enum dtype types[] = { DTYPE_F64, DTYPE_F32, DTYPE_BF16, DTYPE_I64 };
	static const size_t sizes[] = { 0, 1, 2, 17, 1023, 2049, 4097, 100003, 300001 };
	struct err err = ERR_INIT;
	void *shared, *own = malloc(300001 * 8);
	int bad = c->ops->alloc(c, 300001 * 8 + 64, &shared, &err);

	for (size_t t = 0; t < 4; t++)
		for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
			bad |= check_allreduce(c, own, types[t], sizes[s]);
			bad |= check_allreduce(c, (char *)shared + 64, types[t], sizes[s]);
			/* one rank private, the others shared */
			bad |= check_allreduce(c, c->rank ? shared : own, types[t], sizes[s]);
		}
	free(own);
	return bad;
}

static int scatter_gather(struct comm *c, float *data, size_t each)
{
	struct err err = ERR_INIT;
	size_t n = each * (size_t)c->world;

	for (size_t i = 0; i < n; i++)
		data[i] = (float)value(c->rank, i);
	if (c->ops->reduce_scatter(c, data, (int64_t)each, DTYPE_F32, &err))
		return 1;
	for (size_t i = each * (size_t)c->rank; i < each * (size_t)(c->rank + 1); i++)
		if (data[i] != (float)expected_sum(c->world, i))
			return 2;
	if (c->ops->all_gather(c, data, (int64_t)(each * sizeof(float)), &err))
		return 3;
	for (size_t i = 0; i < n; i++)
		if (data[i] != (float)expected_sum(c->world, i))
			return 4;
	return 0;
}

int collectives_scatter(struct comm *c)
{
	static const size_t sizes[] = { 1, 3, 1000, 99991, 300001 };
	struct err err = ERR_INIT;
	size_t most = 300001 * (size_t)c->world * sizeof(float);
	float *own = malloc(most);
	void *shared;
	int bad = c->ops->alloc(c, most, &shared, &err);

	for (size_t s = 0; !bad && s < 5; s++) {
		bad = scatter_gather(c, own, sizes[s]);
		bad = bad ? bad : scatter_gather(c, shared, sizes[s]);
	}
	free(own);
	return bad;
}

/* ---- terms ---- */

#define TERMS_ROOM 8

/* Element i of the sum of leaves [first, first + n), along the tree; sums of these floats are inexact. */
static float tree(int64_t first, int64_t n, size_t i)
{
	int64_t left = 1;

	if (n == 1)
		return 1 / (float)(1 + first * 37 + (int64_t)(i % 1009));
	while (left * 2 < n)
		left *= 2;
	return tree(first, left, i) + tree(first + left, n - left, i);
}

static void put_terms(float *data, size_t count, const struct reduction_tree *l)
{
	uint8_t level[REDUCTION_TREE_ROOTS_MAX];
	const int roots = reduction_tree_roots(l->first, l->n, level);
	int64_t at = l->first;

	for (int k = 0; k < roots; k++, at += INT64_C(1) << level[k - 1])
		for (size_t i = 0; i < count; i++)
			data[(size_t)k * count + i] = tree(at, INT64_C(1) << level[k], i);
}

static int sum_terms(struct comm *c, float *data, size_t count, int64_t leaves)
{
	const void *from[16 * TERMS_ROOM];
	uint8_t adds[16 * TERMS_ROOM];
	const struct comm_terms t = { data, (int64_t)count, TERMS_ROOM, leaves, DTYPE_F32, from, adds };
	const struct reduction_tree own = reduction_tree_part(leaves, c->rank, c->world);
	const size_t each = count / (size_t)c->world, first = each * (size_t)c->rank;
	struct err err = ERR_INIT;

	put_terms(data, count, &own);
	if (c->ops->allreduce_terms(c, &t, &err))
		return 1;
	for (size_t i = 0; i < count; i++)
		if (data[i] != tree(0, leaves, i))
			return 2;
	if (count * sizeof(float) * TERMS_ROOM <= 16384) /* scattered sums are always large */
		return 0;
	put_terms(data, count, &own);
	if (c->ops->reduce_scatter_terms(c, &t, &err))
		return 3;
	for (size_t i = first; i < first + each; i++)
		if (data[i] != tree(0, leaves, i))
			return 4;
	return 0;
}

/* The longest one crosses machines in more chunks than are in flight at once; few ranks suffice for that. */
int collectives_terms(struct comm *c)
{
	const size_t sizes[] = { 4, 60 * (size_t)c->world, 3000 * (size_t)c->world };
	const size_t longest = c->world <= 4 ? 600000 : sizes[2];
	struct err err = ERR_INIT;
	void *shared;
	int bad = c->ops->alloc(c, longest * TERMS_ROOM * sizeof(float), &shared, &err);

	for (int64_t leaves = 1; !bad && leaves <= 21; leaves++)
		for (int s = 0; !bad && s < 3; s++)
			bad = sum_terms(c, shared, sizes[s], leaves);
	return bad ? bad : sum_terms(c, shared, longest, 13);
}

int collectives_broadcast(struct comm *c)
{
	size_t n = 3000001;
	unsigned char *data = malloc(n);
	struct err err = ERR_INIT;
	int bad = 0;

	for (int root = 0; root < c->world && !bad; root++) {
		for (size_t i = 0; i < n; i++)
			data[i] = c->rank == root ? (unsigned char)(i * 31 + (size_t)root) : 0;
		bad = c->ops->broadcast(c, data, n, root, &err);
		for (size_t i = 0; i < n && !bad; i++)
			bad = data[i] != (unsigned char)(i * 31 + (size_t)root);
	}
	free(data);
	return bad;
}

/* A ring: every rank sends to the right and receives from the left; even ranks send first. */
int collectives_ring(struct comm *c)
{
	size_t n = 100001;
	int to = (c->rank + 1) % c->world, from = (c->rank + c->world - 1) % c->world, bad = 0;
	unsigned char *out = malloc(n), *in = calloc(1, n);
	struct err err = ERR_INIT;

	for (size_t i = 0; i < n; i++)
		out[i] = (unsigned char)(i + (size_t)c->rank);
	if (c->rank % 2 == 0)
		bad = c->ops->send(c, out, n, to, &err);
	bad = bad ? bad : c->ops->recv(c, in, n, from, &err);
	if (c->rank % 2)
		bad = bad ? bad : c->ops->send(c, out, n, to, &err);
	for (size_t i = 0; i < n && !bad; i++)
		bad = in[i] != (unsigned char)(i + (size_t)from);
	free(out);
	free(in);
	return bad;
}

int collectives_repeat(struct comm *c)
{
	int bad = 0;
	double small[5];

	for (int k = 0; k < 3000 && !bad; k++)
		bad = check_allreduce(c, small, DTYPE_F64, (size_t)(k % 6 < 5 ? k % 6 : 3));
	return bad;
}

/* ---- groups ---- */

/* Sums and gathers of every kind in a group, in memory from the job's communicator and in the rank's own. */
static int use_group(struct comm *c, void *shared, void *own)
{
	static const size_t sizes[] = { 1, 2049, 4097, 100003 };
	int bad = 0;

	for (size_t s = 0; s < 4 && !bad; s++) {
		bad |= check_allreduce(c, shared, DTYPE_F32, sizes[s]);
		bad |= check_allreduce(c, own, DTYPE_F64, sizes[s]);
		bad |= check_allreduce(c, c->rank ? shared : own, DTYPE_F32, sizes[s]);
		bad |= scatter_gather(c, shared, sizes[s] / 4 + 1);
		bad |= scatter_gather(c, own, sizes[s] / 4 + 1);
	}
	return bad;
}

/* Every rank allocates a buffer of a different size. Groups: the even and the odd; neighbours; all but the first. */
int collectives_groups(struct comm *c)
{
	const int color[] = { c->rank % 2, c->rank / 2, c->rank ? 7 : -1 };
	size_t most = (size_t)c->world * 100003 * 8;
	struct err err = ERR_INIT;
	struct comm *group[3];
	void *own = malloc(most), *shared;
	int bad = c->ops->alloc(c, most + (size_t)c->rank * 12345, &shared, &err);

	for (int i = 0; i < 3 && !bad; i++)
		bad = c->ops->split(c, color[i], &group[i], &err);
	for (int i = 0; i < 3 && !bad; i++) {
		if (color[i] < 0) {
			bad = group[i] != NULL;
			continue;
		}
		bad = group[i]->world != (i == 0 ? (c->world + 1 - c->rank % 2) / 2
					  : i == 1 ? (c->rank == (c->world - 1) / 2 * 2 && c->world % 2 ? 1 : 2)
						   : c->world - 1);
		bad |= group[i]->rank != (i == 0 ? c->rank / 2 : i == 1 ? c->rank % 2 : c->rank - 1);
		bad |= use_group(group[i], shared, own);
	}
	bad |= use_group(c, shared, own);
	for (int i = 2; i >= 0; i--)
		if (group[i])
			group[i]->ops->close(group[i]);
	free(own);
	return bad;
}

struct concurrent {
	struct comm *c;
	float *data;
	int bad;
};

static void *sum_beside(void *arg)
{
	struct concurrent *b = arg;

	for (int k = 0; k < 300 && !b->bad; k++)
		b->bad = check_allreduce(b->c, b->data, DTYPE_F32, 5000 + (size_t)k);
	return NULL;
}

/* Two threads of each rank, with a communicator each, at their own pace. */
int collectives_threads(struct comm *c)
{
	struct concurrent b = { .bad = 0 };
	struct err err = ERR_INIT;
	float *data;
	void *shared;
	pthread_t t;
	int bad = c->ops->alloc(c, 2 * 8192 * sizeof(float), &shared, &err) || c->ops->split(c, 0, &b.c, &err);

	if (bad)
		return bad;
	data = shared;
	b.data = data + 8192;
	bad = pthread_create(&t, NULL, sum_beside, &b);
	for (int k = 0; k < 300 && !bad; k++)
		bad = check_allreduce(c, data, DTYPE_F32, 8000 - (size_t)k);
	pthread_join(t, NULL);
	b.c->ops->close(b.c);
	return bad | b.bad;
}
