/* exec_stream_group.c: items that may share launches: of one kernel that can run many, behind each other on a stream
 * but for nodes that watch, with nothing between them that somebody waits for or that takes the time. */
#include "trainer/run/exec/exec_stream_inside.h"

#include <stdlib.h>

#define GROUP_MAX 1024 /* items: each is compared with each */

struct piece { /* of memory */
	const unsigned char *begin, *end;
};

static bool overlap(struct piece a, struct piece b)
{
	return a.begin < b.end && b.begin < a.end;
}

static struct piece operand(void *const *addresses, struct tensor *const *tensors, int k)
{
	const unsigned char *p = addresses[k];

	return (struct piece){ p, p && tensors[k] ? p + tensor_bytes(tensors[k]) : p };
}

static struct piece workspace(const struct stream_item *it)
{
	const unsigned char *p = it->args.workspace;

	return (struct piece){ p, p ? p + it->node->workspace_bytes : p };
}

static bool touches(const struct stream_item *it, struct piece p)
{
	const struct node *n = it->node;

	for (int k = 0; k < n->n_in; k++)
		if (overlap(p, operand(it->args.in, n->in, k)))
			return true;
	for (int k = 0; k < n->n_out; k++)
		if (overlap(p, operand(it->args.out, n->out, k)))
			return true;
	return false;
}

/* Whether the first writes what the second reads or writes. Of workspaces see run_many. */
static bool disturbs(const struct stream_item *a, const struct stream_item *b)
{
	for (int k = 0; k < a->node->n_out; k++) {
		const struct piece written = operand(a->args.out, a->node->out, k);

		if (touches(b, written) || overlap(written, workspace(b)))
			return true;
	}
	return touches(b, workspace(a));
}

static bool same_types(struct tensor *const *a, struct tensor *const *b, int n)
{
	for (int k = 0; k < n; k++)
		if (!a[k] != !b[k] || (a[k] && a[k]->dtype != b[k]->dtype))
			return false;
	return true;
}

static bool alike(const struct stream_item *a, const struct stream_item *b)
{
	const struct node *m = a->node, *n = b->node;

	return a->kernel == b->kernel && a->stream == b->stream && a->args.page == b->args.page &&
	       m->n_in == n->n_in && m->n_out == n->n_out && same_types(m->in, n->in, n->n_in) &&
	       same_types(m->out, n->out, n->n_out);
}

/* Whether nothing but the item's run happens in its turn, in front of it or behind. */
static bool nothing_before(const struct stream_item *it)
{
	for (int k = 0; k < STREAM_COUNT; k++)
		if (it->wait[k])
			return false;
	return !it->before && !it->begins;
}

static bool joins(const struct stream_program *sp, const int *members, int n, int index)
{
	const struct stream_item *it = &sp->items[index];

	if (n == GROUP_MAX || !alike(&sp->items[members[0]], it))
		return false;
	for (int k = 0; k < n; k++)
		if (disturbs(&sp->items[members[k]], it) || disturbs(it, &sp->items[members[k]]))
			return false;
	return true;
}

/* The items from `first` on that run with it, in `members`; returns their number. */
static int gather(const struct stream_program *sp, int first, int *members)
{
	int n = 1;

	members[0] = first;
	for (int i = first + 1; i < sp->n && !sp->items[i - 1].event && nothing_before(&sp->items[i]); i++) {
		if (sp->items[i].node->op->watches)
			continue;
		if (!joins(sp, members, n, i))
			break;
		members[n++] = i;
	}
	return n;
}

static int group(struct stream_program *sp, const int *members, int n, struct err *err)
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
		const int n = sp->items[i].kernel->run_many ? gather(sp, i, members) : 1;

		if (n > 1) {
			rc = group(sp, members, n, err);
			i = members[n - 1];
		}
	}
	return rc;
}
