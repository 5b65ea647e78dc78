/* probe.c: runs one node alone. Its memory holds the operands, then the workspace. */
#include "trainer/tools/probe.h"

#include <math.h>
#include <stdlib.h>

#include "tracker/base/clock.h"
#include "trainer/ops/cast/float16.h"

#define ALIGN 256
#define RUNS_LEAST 10
#define NUMBERS_BYTES ((size_t)1 << 20)
#define PATIENCE 5 /* limit of the duration, as a multiple of the wanted one */

static size_t padded_bytes(const struct tensor *t)
{
	return t ? (tensor_bytes(t) + ALIGN - 1) / ALIGN * ALIGN : 0;
}

int probe_init(struct probe *p, const struct program_opts *o, struct err *err)
{
	*p = (struct probe){ .opts = o, .graph = graph_new(false), .numbers = malloc(NUMBERS_BYTES) };
	return p->graph && p->numbers ? 0 : err_set(err, ERR_NOMEM, "out of memory: bench");
}

static size_t place_operands(struct probe *p, struct tensor *const *tensors, int n, void **ret, size_t at)
{
	for (int i = 0; i < n; i++) {
		ret[i] = tensors[i] ? (char *)p->memory + at : NULL;
		at += padded_bytes(tensors[i]);
	}
	return at;
}

/* Writes the operands: pages never written all map to one page of zeros, which stays in the cache. */
static int fill_operand(struct probe *p, const struct tensor *t, void *to, struct err *err)
{
	const int64_t width = (int64_t)dtype_bytes(t->dtype), count = NUMBERS_BYTES / width;
	const size_t bytes = tensor_bytes(t);
	int rc = 0;

	for (int64_t i = 0; i < count; i++)
		float_put(p->numbers, t->dtype, i, (double)(i * 2654435761 % 1999) / 1999 - 0.5);
	for (size_t at = 0; !rc && at < bytes; at += NUMBERS_BYTES)
		rc = p->opts->backend->copy(p->opts->module, (char *)to + at, p->numbers,
					    bytes - at < NUMBERS_BYTES ? bytes - at : NUMBERS_BYTES, err);
	return rc;
}

static int fill_operands(struct probe *p, struct tensor *const *tensors, int n, void *const *to, struct err *err)
{
	int rc = 0;

	for (int i = 0; !rc && i < n; i++)
		rc = tensors[i] ? fill_operand(p, tensors[i], to[i], err) : 0;
	return rc;
}

/* Opens a device's stream, and events for timing. */
static int open_probe_stream(struct probe *p, struct err *err)
{
	const struct backend_streams *s = p->opts->backend->streams;
	int rc = s ? s->stream_new(p->opts->module, &p->args.stream, err) : 0;

	if (s && !rc)
		rc = s->event_new(p->opts->module, true, &p->from, err);
	if (s && !rc)
		rc = s->event_new(p->opts->module, true, &p->to, err);
	return rc;
}

int probe_prepare(struct probe *p, struct node *n, struct err *err)
{
	size_t at;
	int rc;

	if (!n)
		return err_set(err, p->graph->err.code, "%s", p->graph->err.text);
	p->kernel = program_kernel(p->opts, n);
	rc = p->kernel->prepare(&p->opts->env, n, &p->state, err);
	p->bytes = n->workspace_bytes;
	for (int i = 0; i < n->n_in; i++)
		p->bytes += padded_bytes(n->in[i]);
	for (int i = 0; i < n->n_out; i++)
		p->bytes += padded_bytes(n->out[i]);
	if (!rc)
		rc = p->opts->backend->alloc(p->opts->module, SPACE_PRIVATE, p->bytes, &p->memory, err);
	if (rc)
		return rc;
	at = place_operands(p, n->in, n->n_in, p->in, 0);
	at = place_operands(p, n->out, n->n_out, p->out, at);
	p->args = (struct kernel_args){ .in = p->in, .out = p->out, .workspace = (char *)p->memory + at };
	rc = fill_operands(p, n->in, n->n_in, p->in, err);
	if (!rc)
		rc = fill_operands(p, n->out, n->n_out, p->out, err);
	return rc ? rc : open_probe_stream(p, err);
}

static int time_host_run(struct probe *p, double *ret_s, struct err *err)
{
	const double before = clock_mono_s();
	int rc = p->kernel->run(p->state, &p->args, err);

	*ret_s = clock_mono_s() - before;
	return rc;
}

static int time_device_run(struct probe *p, double *ret_s, struct err *err)
{
	const struct backend_streams *s = p->opts->backend->streams;
	void *m = p->opts->module;
	int rc = s->record(m, p->args.stream, p->from, err);

	if (!rc)
		rc = p->kernel->run(p->state, &p->args, err);
	if (!rc)
		rc = s->record(m, p->args.stream, p->to, err);
	if (!rc)
		rc = s->event_sync(m, p->to, err);
	return rc ? rc : s->seconds(m, p->from, p->to, ret_s, err);
}

int probe_best(struct probe *p, double seconds, double *ret_s, struct err *err)
{
	double start = clock_mono_s(), now, took, best = INFINITY;
	int rc, runs = 0;

	do {
		rc = p->opts->backend->streams ? time_device_run(p, &took, err) : time_host_run(p, &took, err);
		now = clock_mono_s();
		best = rc ? best : fmin(best, took);
		runs++;
	} while (!rc && now - start < (runs < RUNS_LEAST ? PATIENCE : 1) * seconds);
	if (!rc)
		*ret_s = best;
	return rc;
}

void probe_done(struct probe *p)
{
	const struct backend_streams *s = p->opts->backend->streams;

	if (p->from)
		s->event_free(p->opts->module, p->from);
	if (p->to)
		s->event_free(p->opts->module, p->to);
	if (p->args.stream)
		s->stream_free(p->opts->module, p->args.stream);
	if (p->state && p->kernel->release)
		p->kernel->release(p->state);
	free(p->numbers);
	if (p->memory)
		p->opts->backend->release(p->opts->module, SPACE_PRIVATE, p->memory, p->bytes);
	graph_free(p->graph);
}
