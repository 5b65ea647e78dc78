/* SPDX-License-Identifier: Apache-2.0 */
/* rank_check.c: ranks exchange hashes first. Only where hashes differ do two ranks exchange what was hashed. All ranks
 * receive the same data and reach the same result. */
#include "trainer/program/rank.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/hash.h"
#include "tracker/mem/mem.h"
#include "trainer/ops/collectives/collectives.h"
#include "trainer/program/prepare.h"


/* ---- flags ---- */

/* Appends "name\0value\0" for each flag that must be the same everywhere. */
static void add_shared_flag(void *user, const struct config_item *item)
{
	if (item->traits & CONFIG_LOCAL)
		return;
	buf_add(user, item->name, strlen(item->name) + 1);
	buf_add(user, item->value, strlen(item->value) + 1);
}

struct flag_text { /* "name\0value\0" of every shared flag of one rank */
	char *text;
	size_t n;
};

/* Copies the text of one rank in the last round and terminates it. */
static struct flag_text copy_rank_text(const struct bootstrap *x, int rank)
{
	struct flag_text t;
	const void *said = bootstrap_said(x, rank, &t.n);

	t.text = mem_array(t.n + 2, 1);
	memcpy(t.text, said, t.n);
	return t;
}

/* Fails with the first flag that rank 0 and the other rank have differently. */
static int describe_flag_difference(struct flag_text first, struct flag_text other, int rank, struct err *err)
{
	size_t a = 0, b = 0;

	while (a < first.n && b < other.n) {
		const char *name = first.text + a, *value = name + strlen(name) + 1;
		const char *theirs = other.text + b, *their_value = theirs + strlen(theirs) + 1;
		char flag[64];

		if (strcmp(name, theirs))
			break;
		snprintf(flag, sizeof(flag), "--%s", name);
		for (char *p = flag; *p; p++)
			*p = *p == '_' ? '-' : *p;
		if (strcmp(value, their_value))
			return err_set(err, ERR_USAGE, "%s: rank 0 has %.80s, rank %d has %.80s; give all machines the "
				       "same flags", flag, *value ? value : "none", rank,
				       *their_value ? their_value : "none");
		a += strlen(name) + strlen(value) + 2;
		b += strlen(theirs) + strlen(their_value) + 2;
	}
	return err_set(err, ERR_USAGE,
		       "rank 0 and rank %d have different flags: start the same program on all machines", rank);
}

/* Rank 0 and the first rank that differs send all their flags; all ranks compare them. */
static int compare_flag_texts(struct bootstrap *x, const struct buf *own, int differs, struct err *err)
{
	bool speaks = bootstrap_self(x) == 0 || bootstrap_self(x) == differs;
	int rc = bootstrap_round(x, own->data, speaks ? own->len : 0, NULL, err);
	struct flag_text first, other;

	if (rc)
		return rc;
	first = copy_rank_text(x, 0);
	other = copy_rank_text(x, differs);
	rc = describe_flag_difference(first, other, differs, err);
	free(first.text);
	free(other.text);
	return rc;
}

/* Returns the first rank whose flags differ from rank 0's; 0: none. */
static int find_differing_rank(const struct bootstrap *x)
{
	size_t n, n_first;
	const void *first = bootstrap_said(x, 0, &n_first);

	for (int r = 1; r < bootstrap_count(x); r++) {
		const void *said = bootstrap_said(x, r, &n);

		if (n != n_first || memcmp(said, first, n))
			return r;
	}
	return 0;
}

int rank_check_flags(const struct run_config *cfg, struct bootstrap *x, struct err *err)
{
	char hash[65] = "";
	struct buf own;
	int rc;

	buf_init(&own, SIZE_MAX);
	config_each(cfg, add_shared_flag, &own);
	sha256_hex(own.data, own.len, hash);
	rc = bootstrap_round(x, hash, sizeof(hash), NULL, err);
	if (!rc && find_differing_rank(x))
		rc = compare_flag_texts(x, &own, find_differing_rank(x), err);
	buf_done(&own);
	return rc;
}

/* ---- collectives ---- */

#define TEXT_BYTES 200

static uint64_t hash_collective_text(uint64_t hash, const char *text)
{
	return hash_fnv(hash, text, strlen(text) + 1);
}

/* Items that must be equal between ranks form a column: column 0 has the collectives of all members of a group; for
 * each other member there is one column of messages to it and one of messages from it. */
struct collective_item {
	const struct node *node;
	const char *program;
	int column;
	uint64_t hash;
};

/* of one lane (the communicator of a stream and a group), in the order in which its nodes run */
struct collective_list {
	enum stream stream;
	enum group group;
	struct comm *comm;
	struct collective_item *item;
	size_t n;
	int columns;
};

static int column_to(int peer)
{
	return 1 + peer;
}

static int column_from(const struct collective_list *l, int peer)
{
	return 1 + l->comm->world + peer;
}

static int lane_column(const struct collective_list *l, const struct node *n)
{
	const struct collective_attr *a = n->attr;

	return n->op == &op_send ? column_to(a->rank) : n->op == &op_recv ? column_from(l, a->rank) : 0;
}

static const struct tensor *first_operand(const struct node *n)
{
	return n->n_in ? n->in[0] : n->out[0];
}

/* Stages of a pipeline have their own names for what they share, and number their nodes separately ("allreduce.72"). */
static bool has_common_name(const struct node *n)
{
	size_t op = strlen(n->op->name);
	bool numbered = !strncmp(n->name, n->op->name, op) && n->name[op] == '.';

	return !numbered && n->group != GROUP_PIPELINE && n->group != GROUP_ENDS;
}

static uint64_t hash_node(const struct node *n, int column)
{
	const struct tensor *t = first_operand(n);
	int64_t what[2] = { (int64_t)t->dtype, (int64_t)tensor_bytes(t) };
	uint64_t hash = hash_fnv(HASH_FNV_BEGIN, what, sizeof(what));

	if (!column)
		hash = hash_collective_text(hash, n->op->name);
	return has_common_name(n) ? hash_collective_text(hash, n->name) : hash;
}

static bool is_on_lane(const struct collective_list *l, const struct node *n)
{
	return n->op->collective && n->group == l->group && stream_meets(n->stream) == l->stream;
}

static bool same_items(const struct collective_item *a, const struct collective_item *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (a[i].column != b[i].column || a[i].hash != b[i].hash)
			return false;
	return true;
}

/* Returns true if the items from `at` on equal those of an earlier program of the same kind for another batch size.
 * Ranks may have different batch sizes. */
static bool is_repeated(const struct collective_list *l, size_t kind_at, size_t at)
{
	size_t n = l->n - at;

	for (size_t i = kind_at; i + n <= at; i++)
		if ((i == kind_at || l->item[i].program != l->item[i - 1].program) &&
		    (i + n == at || l->item[i + n].program != l->item[i + n - 1].program) &&
		    same_items(l->item + i, l->item + at, n))
			return true;
	return false;
}

static void add_program_items(struct collective_list *l, const struct program *p)
{
	for (int k = 0; k < p->schedule.n; k++) {
		const struct node *n = p->schedule.items[k].node;
		int column = is_on_lane(l, n) ? lane_column(l, n) : 0;

		if (is_on_lane(l, n))
			l->item[l->n++] = (struct collective_item){ n, p->name, column, hash_node(n, column) };
	}
}

/* Lists the collectives of all programs that run on the lane; repeated lists are dropped. */
static void build_collective_list(struct collective_list *l, const struct prepared *p)
{
	size_t most = 0;

	l->columns = l->group == GROUP_PIPELINE ? 1 + 2 * l->comm->world : 1;
	for (int i = 0; i < p->n_programs; i++)
		most += (size_t)p->program[i]->schedule.n;
	l->item = mem_array(most + 1, sizeof(*l->item));
	for (int kind = PROGRAM_STEP; kind <= PROGRAM_EVAL; kind++) {
		size_t kind_at = l->n;

		for (int i = 0; i < p->n_programs; i++) {
			size_t at = l->n;

			if ((int)p->program[i]->kind == kind)
				add_program_items(l, p->program[i]);
			if (l->n > at && is_repeated(l, kind_at, at))
				l->n = at;
		}
	}
}

/* A member sends its rank in the job, then a hash for each column. */
static uint64_t *exchange_hashes(const struct collective_list *l, const struct rank *r, struct err *err)
{
	size_t each = 1 + (size_t)l->columns;
	uint64_t *all = mem_array((size_t)l->comm->world * each, sizeof(*all));
	uint64_t *own = all + (size_t)l->comm->rank * each;

	own[0] = (uint64_t)r->context->rank;
	for (int c = 0; c < l->columns; c++)
		own[1 + c] = HASH_FNV_BEGIN;
	for (size_t i = 0; i < l->n; i++)
		own[1 + l->item[i].column] =
			hash_fnv(own[1 + l->item[i].column], &l->item[i].hash, sizeof(l->item[i].hash));
	if (!l->comm->ops->all_gather(l->comm, all, (int64_t)(each * sizeof(*all)), err))
		return all;
	free(all);
	return NULL;
}

struct difference_side {    /* one side of a difference */
	int member, number; /* rank in the group and in the job */
	int column;
	int64_t n;
	uint64_t *hash;
	char text[TEXT_BYTES];
};

/* Returns false if all members agree. */
static bool find_difference(const struct collective_list *l, const uint64_t *all, struct difference_side *a,
			    struct difference_side *b)
{
	size_t each = 1 + (size_t)l->columns;
	int world = l->comm->world;

	*a = (struct difference_side){ .member = 0, .number = (int)all[0] };
	for (int r = 1; r < world; r++)
		if (all[(size_t)r * each + 1] != all[1]) {
			*b = (struct difference_side){ .member = r, .number = (int)all[(size_t)r * each] };
			return true;
		}
	for (int from = 0; l->columns > 1 && from < world; from++)
		for (int to = 0; to < world; to++) {
			*a = (struct difference_side){ from, (int)all[(size_t)from * each], column_to(to), 0, NULL,
						       "" };
			*b = (struct difference_side){ to, (int)all[(size_t)to * each], column_from(l, from), 0, NULL,
						       "" };
			if (all[(size_t)from * each + 1 + (size_t)a->column] !=
			    all[(size_t)to * each + 1 + (size_t)b->column])
				return true;
		}
	return false;
}

/* Returns item i of a column; NULL: it has no more. */
static const struct collective_item *collective_at(const struct collective_list *l, int column, int64_t i)
{
	for (size_t k = 0; k < l->n; k++)
		if (l->item[k].column == column && i-- == 0)
			return &l->item[k];
	return NULL;
}

/* Broadcasts one side's hashes to all members. */
static int broadcast_hashes(const struct collective_list *l, struct difference_side *s, struct err *err)
{
	struct comm *c = l->comm;
	int rc;

	while (c->rank == s->member && collective_at(l, s->column, s->n))
		s->n++;
	rc = c->ops->broadcast(c, &s->n, sizeof(s->n), s->member, err);
	if (rc)
		return rc;
	s->hash = mem_array((size_t)s->n + 1, sizeof(*s->hash));
	for (int64_t i = 0; c->rank == s->member && i < s->n; i++)
		s->hash[i] = collective_at(l, s->column, i)->hash;
	return s->n ? c->ops->broadcast(c, s->hash, (size_t)s->n * sizeof(*s->hash), s->member, err) : 0;
}

/* Broadcasts a description of one side's item at that place. */
static int broadcast_item(const struct collective_list *l, struct difference_side *s, int64_t at, struct err *err)
{
	const struct collective_item *k = collective_at(l, s->column, at);

	if (l->comm->rank == s->member && k) {
		const struct tensor *t = first_operand(k->node);

		snprintf(s->text, sizeof(s->text), "%s (%s, %s, %zu bytes, %s)", k->node->name, k->node->op->name,
			 dtype_name(t->dtype), tensor_bytes(t), k->program);
	} else {
		snprintf(s->text, sizeof(s->text), "no more");
	}
	return l->comm->ops->broadcast(l->comm, s->text, sizeof(s->text), s->member, err);
}

/* Finds and describes the first difference between two sides, on all members. */
static int name_difference(const struct collective_list *l, struct difference_side *a, struct difference_side *b,
			   struct err *err)
{
	int64_t at = 0;
	int rc = broadcast_hashes(l, a, err);

	if (!rc)
		rc = broadcast_hashes(l, b, err);
	while (!rc && at < a->n && at < b->n && a->hash[at] == b->hash[at])
		at++;
	if (!rc)
		rc = broadcast_item(l, a, at, err);
	if (!rc)
		rc = broadcast_item(l, b, at, err);
	if (!rc)
		rc = err_set(err, ERR_UNSUPPORTED,
			     "ranks %d and %d disagree: collective %lld of group %s, stream %s, is %.*s on rank %d and "
			     "%.*s on rank %d; start the same program on all machines",
			     a->number, b->number, (long long)at + 1, group_name(l->group), stream_name(l->stream),
			     TEXT_BYTES - 1, a->text, a->number, TEXT_BYTES - 1, b->text, b->number);
	free(a->hash);
	free(b->hash);
	return rc;
}

static int check_lane(const struct prepared *p, const struct rank *r, struct collective_list *l, struct err *err)
{
	struct difference_side a, b;
	uint64_t *all;
	int rc;

	build_collective_list(l, p);
	all = exchange_hashes(l, r, err);
	rc = all ? 0 : err->code;
	if (!rc && find_difference(l, all, &a, &b))
		rc = name_difference(l, &a, &b, err);
	free(all);
	free(l->item);
	return rc;
}

int rank_check_collectives(const struct prepared *p, const struct rank *r, struct err *err)
{
	int rc = 0;

	for (int i = 0; !rc && i < STREAM_COUNT * GROUP_COUNT; i++) {
		struct collective_list l = { .stream = (enum stream)(i / GROUP_COUNT),
					     .group = (enum group)(i % GROUP_COUNT),
					     .comm = r->lane[i / GROUP_COUNT][i % GROUP_COUNT] };

		if (l.comm && l.comm->world > 1)
			rc = check_lane(p, r, &l, err);
	}
	return rc;
}
