/* SPDX-License-Identifier: Apache-2.0 */
/* written.c: a plan of the fake cuDNN as a text and back: {"cudnnVersion": V, "engine": E, "graph": D}. A descriptor D
 * is {"kind": K, "at": [[name, type, count, V…]…]}, and a value V is a descriptor or bytes in hexadecimal digits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fakes/cuda/descriptor.h"

static void write_descriptor(FILE *to, const struct descriptor *d)
{
	fprintf(to, "{\"kind\": %d, \"at\": [", (int)d->kind);
	for (int i = 0; i < d->n; i++) {
		const struct attribute *a = &d->at[i];

		if (a->type == CUDNN_TYPE_HANDLE)
			continue;
		fprintf(to, "[%d, %d, %lld", (int)a->name, (int)a->type, (long long)a->count);
		for (int64_t k = 0; k < a->count && a->type == CUDNN_TYPE_BACKEND_DESCRIPTOR; k++) {
			fprintf(to, ", ");
			write_descriptor(to, ((struct descriptor *const *)a->values)[k]);
		}
		if (a->type != CUDNN_TYPE_BACKEND_DESCRIPTOR)
			fprintf(to, ", \"");
		for (size_t k = 0; k < value_bytes(a->type) * (size_t)a->count; k++)
			if (a->type != CUDNN_TYPE_BACKEND_DESCRIPTOR)
				fprintf(to, "%02x", ((const unsigned char *)a->values)[k]);
		fprintf(to, a->type == CUDNN_TYPE_BACKEND_DESCRIPTOR ? "]" : "\"]");
	}
	fprintf(to, "]}");
}

char *plan_written(const struct descriptor *config, size_t version)
{
	char *text = NULL;
	size_t n = 0;
	FILE *to = open_memstream(&text, &n);

	if (!to)
		wrong("out of memory");
	fprintf(to, "{\"cudnnVersion\": %zu, \"engine\": %d, \"graph\": ", version, config->engine);
	write_descriptor(to, config->graph);
	fprintf(to, "}");
	fclose(to);
	return text;
}

/* ---- back ---- */

struct reader {
	const char *at;
	bool failed;
};

static void expect(struct reader *r, const char *words)
{
	const size_t n = strlen(words);

	r->failed = r->failed || strncmp(r->at, words, n) != 0;
	if (!r->failed)
		r->at += n;
}

static long long number(struct reader *r)
{
	char *end = NULL;
	long long v = r->failed ? 0 : strtoll(r->at, &end, 10);

	r->failed = r->failed || end == r->at;
	if (!r->failed)
		r->at = end;
	return v;
}

static void read_bytes(struct reader *r, unsigned char *to, size_t n)
{
	expect(r, ", \"");
	for (size_t i = 0; i < n && !r->failed; i++) {
		unsigned byte = 0;

		r->failed = sscanf(r->at, "%2x", &byte) != 1;
		to[i] = (unsigned char)byte;
		r->at += r->failed ? 0 : 2;
	}
	expect(r, "\"");
}

static struct descriptor *read_descriptor(struct reader *r);

static void read_attribute(struct reader *r, struct attribute *a)
{
	expect(r, "[");
	a->name = (cudnnBackendAttributeName_t)number(r);
	expect(r, ", ");
	a->type = (cudnnBackendAttributeType_t)number(r);
	expect(r, ", ");
	a->count = number(r);
	r->failed = r->failed || a->count < 1 || a->count > 64;
	a->values = r->failed ? NULL : calloc((size_t)a->count, value_bytes(a->type));
	if (!a->values)
		return;
	for (int64_t k = 0; k < a->count && a->type == CUDNN_TYPE_BACKEND_DESCRIPTOR; k++) {
		expect(r, ", ");
		((struct descriptor **)a->values)[k] = read_descriptor(r);
	}
	if (a->type != CUDNN_TYPE_BACKEND_DESCRIPTOR)
		read_bytes(r, a->values, value_bytes(a->type) * (size_t)a->count);
	expect(r, "]");
}

/* Never NULL: unfinished if the text is invalid. */
static struct descriptor *read_descriptor(struct reader *r)
{
	struct descriptor *d = calloc(1, sizeof(*d));

	if (!d)
		wrong("out of memory");
	expect(r, "{\"kind\": ");
	d->kind = (cudnnBackendDescriptorType_t)number(r);
	expect(r, ", \"at\": [");
	while (!r->failed && *r->at == '[' && d->n < ATTRIBUTES_MAX)
		read_attribute(r, &d->at[d->n++]);
	expect(r, "]}");
	d->finished = !r->failed;
	return d;
}

void tree_free(struct descriptor *d)
{
	for (int i = 0; d && i < d->n; i++) {
		struct attribute *a = &d->at[i];

		for (int64_t k = 0; k < a->count && a->values && a->type == CUDNN_TYPE_BACKEND_DESCRIPTOR; k++)
			tree_free(((struct descriptor **)a->values)[k]);
		free(a->values);
	}
	free(d);
}

struct descriptor *graph_read(const char *text, size_t version, int *ret_engine)
{
	struct reader r = { .at = text };
	struct descriptor *graph;

	expect(&r, "{\"cudnnVersion\": ");
	r.failed = r.failed || (size_t)number(&r) != version;
	expect(&r, ", \"engine\": ");
	*ret_engine = (int)number(&r);
	expect(&r, ", \"graph\": ");
	graph = read_descriptor(&r);
	expect(&r, "}");
	if (!r.failed)
		return graph;
	tree_free(graph);
	return NULL;
}
