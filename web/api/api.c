/* SPDX-License-Identifier: Apache-2.0 */
/* api.c: submits a change to the store and suspends its call until the commit; look-ups in a run. */
#include "web/api/api.h"

#include <string.h>

bool api_owner(const struct call *c)
{
	return c->client.owner || !c->client.from;
}

static void release_call_store(void *arg)
{
	store_release(arg);
}

void api_restrict(struct call *c, const char *grants, enum token_scope most)
{
	struct api *own = arena_alloc(c->arena, sizeof(*own));

	*own = *c->api;
	own->store = store_restrict(c->api->store, grants, (enum grant_level)most);
	call_defer(c, release_call_store, own->store);
	c->api = own;
}

struct ingest_author api_author(const struct call *c)
{
	if (api_owner(c))
		return (struct ingest_author){ .via = INGEST_VIA_COMMAND };
	if (c->client.person)
		return (struct ingest_author){ .via = "token", .name = c->client.person };
	return (struct ingest_author){ .via = c->client.has == TOKEN_NONE ? "open" : "environment" };
}

struct api_pending {
	struct call *call;
	struct ingest_result res;
	struct api_change change;
};

static void wake_api_change(void *arg, const struct ingest_result *res)
{
	struct api_pending *p = arg;

	p->res = *res;
	call_wake(p->call);
}

static enum call_next refuse_unseen(struct call *c, const struct api_pending *p)
{
	struct buf stored;
	struct js j = { .out = &stored };

	buf_init(&stored, c->out.max);
	if (p->change.stored(c, &j)) {
		call_fail_err(c, NULL, &p->res.err);
		c->out.len -= strlen("}\n");
		buf_adds(&c->out, ",\"stored\":");
		buf_add(&c->out, stored.data, stored.len);
		buf_adds(&c->out, "}\n");
	}
	buf_done(&stored);
	return CALL_DONE;
}

static enum call_next finish_api_change(struct call *c)
{
	struct api_pending *p = c->waiting;
	const struct api_change *change = &p->change;

	if (!p->res.code || change->keep_errors)
		return change->then(c, &p->res);
	if (change->stored && !strcmp(p->res.err.field, "If-Match"))
		return refuse_unseen(c, p);
	if (change->fail)
		return change->fail(c, &p->res.err);
	if (p->res.code == ERR_NOENT)
		return call_fail(c, CALL_not_found, change->field ? change->field : "run", "%s", p->res.err.text);
	return call_fail_err(c, change->field, &p->res.err);
}

enum call_next api_submit(struct call *c, const struct api_change *change)
{
	struct api_pending *p = arena_alloc(c->arena, sizeof(*p));
	struct ingest_done done = { wake_api_change, p };
	struct ingest_op op = *change->op;
	struct err err = ERR_INIT;
	int rc;

	*p = (struct api_pending){ .call = c, .change = *change };
	c->waiting = p;
	c->resume = finish_api_change;
	op.author = api_author(c);
	rc = ingest_submit(c->api->store, &op, &done, NULL, &err);
	if (!rc)
		return CALL_WAIT; /* the result may already be there: the writer owns p until the wake */
	p->res.code = rc;
	p->res.err = err;
	return finish_api_change(c);
}

const char *api_pair(const struct query_kv *pairs, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(pairs[i].key, key))
			return pairs[i].value;
	return NULL;
}

const char *api_param(const struct query_run *run, const char *key)
{
	return api_pair(run->params, run->param_count, key);
}

const struct query_metric *api_metric(const struct query_run *run, const char *key)
{
	for (size_t i = 0; i < run->metric_count; i++)
		if (!strcmp(run->metrics[i].key, key))
			return &run->metrics[i];
	return NULL;
}
