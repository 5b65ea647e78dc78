/* schedule.c: program order as a schedule. What an item must wait for follows from who last wrote and read the memory
 * of its operands, so nodes that update in place need no rule of their own. */
#include "trainer/graph/schedule.h"

#include <stdlib.h>

/* Per tensor (a view counts as its base) and stream: the last item that wrote or read it; -1 none. */
struct access {
	int wrote[STREAM_COUNT], read[STREAM_COUNT];
};

struct tracker {
	struct access *of;
	int waited[STREAM_COUNT]; /* latest item of the other stream that this stream has waited for */
};

static struct access *access_get(struct tracker *t, const struct tensor *tensor)
{
	return &t->of[tensor->base ? tensor->base->id : tensor->id];
}

static int later(int a, int b)
{
	return a > b ? a : b;
}

/* The latest item of the other stream that n must come after. */
static int depends_on(struct tracker *t, const struct node *n, enum stream other)
{
	int dep = -1;

	for (int k = 0; k < n->n_in; k++)
		if (n->in[k])
			dep = later(dep, access_get(t, n->in[k])->wrote[other]);
	for (int k = 0; k < n->n_out; k++)
		if (n->out[k]) {
			const struct access *a = access_get(t, n->out[k]);

			dep = later(dep, later(a->wrote[other], a->read[other]));
		}
	return dep;
}

static void record(struct tracker *t, const struct node *n, int item)
{
	for (int k = 0; k < n->n_in; k++)
		if (n->in[k])
			access_get(t, n->in[k])->read[n->stream] = item;
	for (int k = 0; k < n->n_out; k++)
		if (n->out[k])
			access_get(t, n->out[k])->wrote[n->stream] = item;
}

static int tracker_init(struct tracker *t, int n_tensors)
{
	t->of = calloc((size_t)n_tensors + 1, sizeof(*t->of));
	if (!t->of)
		return ERR_NOMEM;
	for (int i = 0; i < n_tensors; i++)
		for (int s = 0; s < STREAM_COUNT; s++)
			t->of[i].wrote[s] = t->of[i].read[s] = -1;
	for (int s = 0; s < STREAM_COUNT; s++)
		t->waited[s] = -1;
	return 0;
}

int schedule_make(struct schedule *ret, struct graph *g, struct err *err)
{
	struct tracker t;
	struct schedule s = { .n = g->n_nodes, .slots = 1 };

	if (graph_failed(g))
		return err_set(err, g->err.code, "%s", g->err.text);
	s.items = arena_array(g->arena, (size_t)s.n + 1, sizeof(*s.items));
	if (!s.items || tracker_init(&t, g->n_tensors) != 0)
		return err_set(err, ERR_NOMEM, "out of memory for a schedule of %d nodes", s.n);
	for (int i = 0; i < s.n; i++) {
		struct node *n = g->nodes[i];
		enum stream other = n->stream == STREAM_COMPUTE ? STREAM_COMM : STREAM_COMPUTE;
		int dep = depends_on(&t, n, other);

		s.items[i] = (struct schedule_item){ .node = n, .stream = n->stream, .wait = -1 };
		if (dep > t.waited[n->stream]) {
			s.items[i].wait = t.waited[n->stream] = dep;
			s.items[dep].signal = true;
		}
		record(&t, n, i);
	}
	free(t.of);
	*ret = s;
	return 0;
}
