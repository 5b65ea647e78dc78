/* exec_stream_group.c: groups items that can share launches: items of one kernel that can run many, adjacent on a
 * stream except for nodes that watch, without an event or a time mark between them. */
#include "trainer/run/exec/exec_stream_inside.h"

#include <stdlib.h>

#define GROUP_MAX 1024 /* items; each is compared with each */

struct memory_range { /* range of memory */
	const unsigned char *begin, *end;
};

static bool ranges_overlap(struct memory_range a, struct memory_range b)
{
	return a.begin < b.end && b.begin < a.end;
}

static struct memory_range operand_range(void *const *addresses, struct tensor *const *tensors, int k)
{
	const unsigned char *p = addresses[k];

	return (struct memory_range){ p, p && tensors[k] ? p + tensor_bytes(tensors[k]) : p };
}

static struct memory_range workspace_range(const struct stream_item *it)
{
	const unsigned char *p = it->args.workspace;

	return (struct memory_range){ p, p ? p + it->node->workspace_bytes : p };
}

static bool touches_range(const struct stream_item *it, struct memory_range p)
{
	const struct node *n = it->node;

	for (int k = 0; k < n->n_in; k++)
		if (ranges_overlap(p, operand_range(it->args.in, n->in, k)))
			return true;
	for (int k = 0; k < n->n_out; k++)
		if (ranges_overlap(p, operand_range(it->args.out, n->out, k)))
			return true;
	return false;
}

/* Returns true if the first writes what the second reads or writes. For workspaces see run_many. */
static bool writes_operand_of(const struct stream_item *a, const struct stream_item *b)
{
	for (int k = 0; k < a->node->n_out; k++) {
		const struct memory_range written = operand_range(a->args.out, a->node->out, k);

		if (touches_range(b, written) || ranges_overlap(written, workspace_range(b)))
			return true;
	}
	return touches_range(b, workspace_range(a));
}

static bool same_types(struct tensor *const *a, struct tensor *const *b, int n)
{
	for (int k = 0; k < n; k++)
		if (!a[k] != !b[k] || (a[k] && a[k]->dtype != b[k]->dtype))
			return false;
	return true;
}

static bool same_kernel_call(const struct stream_item *a, const struct stream_item *b)
{
	const struct node *m = a->node, *n = b->node;

	return a->kernel == b->kernel && a->stream == b->stream && a->args.page == b->args.page &&
	       m->n_in == n->n_in && m->n_out == n->n_out && same_types(m->in, n->in, n->n_in) &&
	       same_types(m->out, n->out, n->n_out);
}

/* Returns true if the item has no waits and no time marks. */
static bool has_no_events(const struct stream_item *it)
{
	for (int k = 0; k < STREAM_COUNT; k++)
		if (it->wait[k])
			return false;
	return !it->before && !it->begins;
}

static bool may_join_group(const struct stream_program *sp, const int *members, int n, int index)
{
	const struct stream_item *it = &sp->items[index];

	if (n == GROUP_MAX || !same_kernel_call(&sp->items[members[0]], it))
		return false;
	for (int k = 0; k < n; k++)
		if (writes_operand_of(&sp->items[members[k]], it) || writes_operand_of(it, &sp->items[members[k]]))
			return false;
	return true;
}

/* Lists in `members` the items from `first` on that run together with it; returns their number. */
static int collect_group(const struct stream_program *sp, int first, int *members)
{
	int n = 1;

	members[0] = first;
	for (int i = first + 1; i < sp->n && !sp->items[i - 1].event && has_no_events(&sp->items[i]); i++) {
		if (sp->items[i].node->op->watches)
			continue;
		if (!may_join_group(sp, members, n, i))
			break;
		members[n++] = i;
	}
	return n;
}

static int make_stream_group(struct stream_program *sp, const int *members, int n, struct err *err)
{
	struct arena *arena = sp->program->graph->arena;
	struct stream_group *g = arena_array(arena, 1, sizeof(*g));
	void **states = arena_array(arena, (size_t)n, sizeof(*states));
	struct kernel_args *args = arena_array(arena, (size_t)n, sizeof(*args));

	if (!g || !states || !args)
		return err_set(err, ERR_NOMEM, "out of memory: nodes that run together");
	*g = (struct stream_group){ states, args, n };
	for (int k = 0; k < n; k++) {
		struct stream_item *it = &sp->items[members[k]];

		states[k] = it->state;
		args[k] = it->args;
		it->group = g;
		it->leads = k == 0;
	}
	return 0;
}

int stream_program_group(struct stream_program *sp, struct err *err)
{
	int members[GROUP_MAX], rc = 0;

	for (int i = 0; !rc && i < sp->n; i++) {
		const int n = sp->items[i].kernel->run_many ? collect_group(sp, i, members) : 1;

		if (n > 1) {
			rc = make_stream_group(sp, members, n, err);
			i = members[n - 1];
		}
	}
	return rc;
}
