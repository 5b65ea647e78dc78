/* probe.c: the operands lie behind each other, then the workspace. */
#include "trainer/tools/probe.h"

#include "tracker/base/clock.h"

#define ALIGN 64
#define RUNS_LEAST 10
#define PATIENCE 5 /* times as long as was asked for, at most */

static size_t room_of(const struct tensor *t)
{
	return t ? (tensor_bytes(t) + ALIGN - 1) / ALIGN * ALIGN : 0;
}

int probe_init(struct probe *p, const struct program_opts *o, struct err *err)
{
	*p = (struct probe){ .opts = o, .graph = graph_new(false) };
	return p->graph ? 0 : err_set(err, ERR_NOMEM, "out of memory: bench");
}

static size_t place(struct probe *p, struct tensor *const *tensors, int n, void **ret, size_t at)
{
	for (int i = 0; i < n; i++) {
		ret[i] = tensors[i] ? (char *)p->memory + at : NULL;
		at += room_of(tensors[i]);
	}
	return at;
}

/* Pages that nobody has written are all one page of zeros, which lies in every cache. */
static int touch(struct probe *p, size_t bytes, struct err *err)
{
	static const char zeros[65536];
	int rc = 0;

	for (size_t at = 0; !rc && at < bytes; at += sizeof(zeros))
		rc = p->opts->backend->copy(p->opts->module, (char *)p->memory + at, zeros,
					    bytes - at < sizeof(zeros) ? bytes - at : sizeof(zeros), err);
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
		p->bytes += room_of(n->in[i]);
	for (int i = 0; i < n->n_out; i++)
		p->bytes += room_of(n->out[i]);
	if (!rc)
		rc = p->opts->backend->alloc(p->opts->module, SPACE_PRIVATE, p->bytes, &p->memory, err);
	if (rc)
		return rc;
	at = place(p, n->in, n->n_in, p->in, 0);
	at = place(p, n->out, n->n_out, p->out, at);
	rc = touch(p, at, err);
	if (rc)
		return rc;
	p->args = (struct kernel_args){ .in = p->in, .out = p->out, .workspace = (char *)p->memory + at };
	return 0;
}

int probe_best(struct probe *p, double seconds, double *ret_s, struct err *err)
{
	double start = clock_mono_s(), now, best = 1e9;
	int rc, runs = 0;

	do {
		double before = clock_mono_s();

		rc = p->kernel->run(p->state, &p->args, err);
		now = clock_mono_s();
		best = now - before < best ? now - before : best;
		runs++;
	} while (!rc && now - start < (runs < RUNS_LEAST ? PATIENCE : 1) * seconds);
	if (!rc)
		*ret_s = best;
	return rc;
}

void probe_done(struct probe *p)
{
	if (p->state)
		p->kernel->release(p->state);
	if (p->memory)
		p->opts->backend->release(p->opts->module, SPACE_PRIVATE, p->memory, p->bytes);
	graph_free(p->graph);
}
