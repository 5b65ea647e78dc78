/* SPDX-License-Identifier: Apache-2.0 */
/* weights.c: loads and saves parameters and statistics of a graph, in the layout of other programs' files. */
#include "trainer/weights/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/models/decoder.h"
#include "trainer/ops/cast/float16.h"
#include "trainer/weights/weight_layout.h"

#define NAMES_SHOWN_BYTES 300
#define PART_BYTES ((size_t)8 << 20) /* part of a tensor that is read or written at once */

static bool name_begins_with(const char *name, const char *prefix)
{
	return prefix && !strncmp(name, prefix, strlen(prefix));
}

bool weights_is_adapter(const struct tensor *t)
{
	return t->kind == TENSOR_PARAM && name_begins_with(t->name, DECODER_ADAPTER);
}

static bool is_tensor_of_part(const struct tensor *t, enum weights_part part)
{
	bool model = t->kind == TENSOR_PARAM || t->kind == TENSOR_STAT;

	return t->life == LIFE_PERSISTENT && !t->base && model == (part != WEIGHTS_STATE) &&
	       weights_is_adapter(t) == (part == WEIGHTS_ADAPTER);
}

static bool is_float(const struct st_tensor *f)
{
	return f->dtype == ST_F64 || f->dtype == ST_F32 || f->dtype == ST_F16 || f->dtype == ST_BF16;
}

struct name_findings { /* first name and number of each kind of mismatch */
	const char *missing, *extra, *shape, *type;
	int n_missing, n_extra, n_shape, n_type;
};

static void count_finding(const char **first, int *n, const char *name)
{
	if (!(*n)++)
		*first = name;
}

/* Returns true for tensors that the options load. */
static bool should_load(const struct tensor *t, const struct weights_load_opts *o)
{
	return is_tensor_of_part(t, o->part) && !name_begins_with(t->name, o->skip);
}

/* Compares names, shapes and types of the graph and the file. */
static struct name_findings compare_names(const struct graph *g, const struct safetensors *s,
					  const struct weights_load_opts *o)
{
	struct name_findings f = { .n_missing = 0 };

	for (int i = 0; i < g->n_tensors; i++) {
		const struct tensor *t = g->tensors[i];
		const struct st_tensor *in_file = should_load(t, o) ? layout_find(s, t->name) : NULL;

		if (!should_load(t, o))
			continue;
		if (!in_file)
			count_finding(&f.missing, &f.n_missing, t->name);
		else if (!layout_same_shape(t, in_file))
			count_finding(&f.shape, &f.n_shape, t->name);
		else if (!is_float(in_file))
			count_finding(&f.type, &f.n_type, t->name);
	}
	for (size_t i = 0; i < safetensors_count(s); i++) {
		const char *name = safetensors_at(s, i)->name;
		const struct tensor *t = layout_owner(g, name);

		if ((!t || !is_tensor_of_part(t, o->part)) && !layout_ignorable(g, s, name) &&
		    !name_begins_with(name, o->skip))
			count_finding(&f.extra, &f.n_extra, name);
	}
	return f;
}

static void add_finding(struct buf *b, const char *what, const char *first, int n)
{
	if (n)
		buf_addf(b, "%s%d %s (%s'%.80s')", b->len ? ", " : "", n, what, n > 1 ? "first " : "", first);
}

static void add_shapes(struct buf *b, const struct tensor *t, const struct st_tensor *f)
{
	buf_adds(b, ": file [");
	for (int i = 0; i < f->ndim; i++)
		buf_addf(b, i ? ",%lld" : "%lld", (long long)f->dim[i]);
	buf_adds(b, "], model [");
	for (int i = 0; i < t->shape.ndim; i++)
		buf_addf(b, i ? ",%lld" : "%lld", (long long)layout_dim(t, i));
	buf_adds(b, "]");
}

/* Reports all mismatches in one line. */
static int check_names(const struct graph *g, const struct safetensors *s, const struct weights_load_opts *o,
		       struct err *err)
{
	struct name_findings f = compare_names(g, s, o);
	char advice[100] = "";
	struct buf b;
	int rc = 0;

	if (!f.n_missing && !f.n_extra && !f.n_shape && !f.n_type)
		return 0;
	buf_init(&b, 2 * NAMES_SHOWN_BYTES);
	add_finding(&b, "missing", f.missing, f.n_missing);
	add_finding(&b, "unexpected", f.extra, f.n_extra);
	add_finding(&b, "of another shape", f.shape, f.n_shape);
	if (f.n_shape)
		add_shapes(&b, graph_find(g, f.shape), layout_find(s, f.shape));
	add_finding(&b, "not of a float type", f.type, f.n_type);
	for (size_t i = 0; i < b.len; i++)
		if ((unsigned char)b.data[i] < 32)
			b.data[i] = '?';
	if (f.n_shape && name_begins_with(f.shape, o->head))
		snprintf(advice, sizeof(advice),
			 o->evaluates ? ": use --classes %lld, and labels as in training"
				      : ": use --reset-head to initialise the classifier again",
			 (long long)layout_find(s, f.shape)->dim[0]);
	rc = err_set(err, ERR_USAGE, "%.100s: tensors do not fit the %s: %.*s%s", safetensors_path(s),
		     o->part == WEIGHTS_MODEL	  ? "model"
		     : o->part == WEIGHTS_ADAPTER ? "adapter"
						  : "optimiser",
		     NAMES_SHOWN_BYTES, b.data ? b.data : "", advice);
	buf_done(&b);
	return rc;
}

/* Returns the rows of t that are loaded at once. */
static int64_t rows_at_once(const struct tensor *t)
{
	const struct layout_rows rows = layout_rows(t);
	const size_t most = PART_BYTES / ((size_t)rows.each * dtype_bytes(t->dtype) + 1);

	return (size_t)rows.n <= most ? rows.n : most ? (int64_t)most : 1;
}

/* Returns the size of the largest piece to load: bytes, and doubles for its conversion. */
static void find_load_sizes(const struct graph *g, enum weights_part part, size_t *ret_scratch, size_t *ret_bytes)
{
	*ret_scratch = *ret_bytes = 1;
	for (int i = 0; i < g->n_tensors; i++) {
		const struct tensor *t = g->tensors[i];
		const int64_t rows = is_tensor_of_part(t, part) ? rows_at_once(t) : 0;
		const size_t bytes = (size_t)(rows * layout_rows(t).each) * dtype_bytes(t->dtype);
		const size_t scratch = rows ? layout_scratch(t, rows) : 0;

		if (bytes > *ret_bytes)
			*ret_bytes = bytes;
		if (scratch > *ret_scratch)
			*ret_scratch = scratch;
	}
}

int weights_check(const struct graph *g, const struct weights_load_opts *o, struct err *err)
{
	struct safetensors *s = NULL;
	int rc = safetensors_open(&s, o->path, err);

	if (!rc)
		rc = check_names(g, s, o, err);
	safetensors_close(s);
	return rc;
}

/* room: buffers of the sizes from find_load_sizes. */
static int load_tensor(const struct tensor *t, const struct st_tensor *f, const struct layout_piece *room,
		       const struct weights_access *a, struct err *err)
{
	const struct layout_rows rows = layout_rows(t);
	const int64_t step = rows_at_once(t);
	int rc = 0;

	for (int64_t at = 0; !rc && at < rows.n; at += step) {
		const int64_t end = rows.n - at < step ? rows.n : at + step;

		layout_from_file(t, f, &(struct layout_piece){ at, end, room->scratch, room->to });
		rc = a->put(a->user, t, &(struct weights_part_of){ at * rows.each, end * rows.each, room->to }, err);
	}
	return rc;
}

int weights_load(const struct graph *g, const struct weights_load_opts *o, const struct weights_access *a,
		 struct err *err)
{
	struct safetensors *s = NULL;
	struct layout_piece room = { .scratch = NULL };
	size_t n_scratch, n_bytes;
	int rc = safetensors_open(&s, o->path, err);

	if (!rc)
		rc = check_names(g, s, o, err);
	if (rc)
		goto out;
	find_load_sizes(g, o->part, &n_scratch, &n_bytes);
	room.scratch = malloc(n_scratch * sizeof(*room.scratch));
	room.to = malloc(n_bytes);
	if (!room.scratch || !room.to) {
		rc = err_set(err, ERR_NOMEM, "out of memory: a piece of %.300s of %zu bytes", o->path, n_bytes);
		goto out;
	}
	for (int i = 0; i < g->n_tensors && !rc; i++) {
		const struct tensor *t = g->tensors[i];

		if (should_load(t, o))
			rc = load_tensor(t, layout_find(s, t->name), &room, a, err);
	}
out:
	free(room.scratch);
	free(room.to);
	safetensors_close(s);
	return rc;
}

struct weights_saving {
	const struct tensor **tensors;
	const struct weights_access *access;
	const struct weights_save_opts *o;
	char *ours, *theirs;
};

/* The type that t has in the file. */
static enum dtype stored_type(const struct weights_save_opts *o, const struct tensor *t)
{
	return o->converts ? o->as : t->dtype;
}

/* Converts n elements of t to the type that the file shall have. Returns what to write. */
static const void *convert_part(const struct weights_saving *s, const struct tensor *t, const void *from, size_t n)
{
	const enum dtype as = stored_type(s->o, t);

	if (as == t->dtype)
		return from;
	for (size_t i = 0; i < n; i++)
		float_put(s->theirs, as, (int64_t)i, float_get(from, t->dtype, (int64_t)i));
	return s->theirs;
}

static bool is_in_parts(const struct weights_access *a, const struct tensor *t)
{
	return a && a->get_part && !a->peek && !layout_differs(t);
}

static int fetch_tensor(void *user, size_t i, const void **ret, struct err *err)
{
	struct weights_saving *s = user;
	const struct weights_access *a = s->access;
	const struct tensor *t = s->tensors[i];
	const void *from = a->peek ? a->peek(a->user, t) : s->ours;
	int rc = a->peek ? 0 : a->get(a->user, t, s->ours, err);

	if (!rc && layout_differs(t))
		layout_to_file(t, from, s->theirs);
	*ret = layout_differs(t) ? s->theirs : from;
	return rc;
}

/* Tensors with our layout in the file are fetched in parts. */
static int fetch_tensor_part(void *user, struct st_part *part, struct err *err)
{
	struct weights_saving *s = user;
	const struct tensor *t = s->tensors[part->tensor];
	const size_t stored = dtype_bytes(stored_type(s->o, t)), most = PART_BYTES / dtype_bytes(t->dtype);
	const bool in_parts = is_in_parts(s->access, t);
	struct weights_part_of range = { .begin = (int64_t)(part->at / stored), .data = s->ours };
	size_t n = (size_t)(shape_count(&t->shape) - range.begin);
	int rc;

	n = in_parts && n > most ? most : n;
	range.end = range.begin + (int64_t)n;
	part->data = s->ours;
	rc = in_parts ? s->access->get_part(s->access->user, t, &range, err)
		      : fetch_tensor(user, part->tensor, &part->data, err);
	part->bytes = n * stored;
	if (!rc)
		part->data = convert_part(s, t, part->data, n);
	return rc;
}

/* Describes the tensors to store; returns their number. */
static size_t describe_saved_tensors(const struct graph *g, const struct weights_save_opts *o,
				     const struct tensor **tensors, struct st_tensor *described)
{
	static const enum st_dtype types[] = {
		[DTYPE_F64] = ST_F64, [DTYPE_F32] = ST_F32, [DTYPE_BF16] = ST_BF16, [DTYPE_F16] = ST_F16
	};
	size_t n = 0;

	for (int i = 0; i < g->n_tensors; i++) {
		const struct tensor *t = g->tensors[i];

		if (!is_tensor_of_part(t, o->part))
			continue;
		tensors[n] = t;
		described[n] =
			(struct st_tensor){ .name = t->name, .dtype = types[stored_type(o, t)], .ndim = t->shape.ndim };
		for (int d = 0; d < t->shape.ndim; d++)
			described[n].dim[d] = layout_dim(t, d);
		n++;
	}
	return n;
}

/* Returns the largest number of bytes fetched at once. */
static size_t largest_piece(const struct graph *g, enum weights_part part, const struct weights_access *a)
{
	size_t most = 1;

	for (int i = 0; i < g->n_tensors; i++) {
		const struct tensor *t = g->tensors[i];
		size_t bytes = is_tensor_of_part(t, part) ? tensor_bytes(t) : 0;

		if (bytes > PART_BYTES && is_in_parts(a, t))
			bytes = PART_BYTES;
		most = bytes > most ? bytes : most;
	}
	return most;
}

int weights_save(const struct graph *g, const struct weights_save_opts *o, const struct weights_access *a,
		 struct err *err)
{
	struct weights_saving s = { .access = a, .o = o };
	struct st_tensor *described = calloc((size_t)g->n_tensors + 1, sizeof(*described));
	size_t n_bytes, n = 0;
	int rc;

	n_bytes = largest_piece(g, o->part, a);
	s.tensors = calloc((size_t)g->n_tensors + 1, sizeof(*s.tensors));
	s.ours = malloc(n_bytes);
	s.theirs = malloc(2 * n_bytes); /* f32 may become f64 */
	if (!described || !s.tensors || !s.ours || !s.theirs) {
		rc = err_set(err, ERR_NOMEM, "out of memory: a tensor of %.300s of %zu bytes", o->path, n_bytes);
	} else {
		n = describe_saved_tensors(g, o, s.tensors, described);
		rc = safetensors_write(&(struct st_write_opts){ .path = o->path,
								.tensors = described,
								.n_tensors = n,
								.meta = o->meta,
								.n_meta = o->n_meta,
								.fetch_part = fetch_tensor_part,
								.user = &s,
								.ret_sum = o->ret_sum },
				       err);
	}
	free(described);
	free(s.tensors);
	free(s.ours);
	free(s.theirs);
	return rc;
}
