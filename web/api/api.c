/* api.c: a change on its way into the store, while its call waits. */
#include "web/api/api.h"

#include <stdlib.h>
#include <string.h>

struct api_pending {
	struct call *call;
	struct ingest_result res;
	struct api_change change;
};

static void api_committed(void *arg, const struct ingest_result *res)
{
	struct api_pending *p = arg;

	p->res = *res;
	call_wake(p->call);
}

static enum call_next api_resumed(struct call *c)
{
	struct api_pending *p = c->waiting;
	const struct api_change *change = &p->change;

	if (!p->res.code || change->keep_errors)
		return change->then(c, &p->res);
	if (change->fail)
		return change->fail(c, &p->res.err);
	if (p->res.code == ERR_NOENT)
		return call_fail(c, CALL_not_found, change->field ? change->field : "run", "%s", p->res.err.text);
	return call_fail_err(c, change->field, &p->res.err);
}

enum call_next api_submit(struct call *c, const struct api_change *change)
{
	struct api_pending *p = arena_alloc(c->arena, sizeof(*p));
	struct ingest_done done = { api_committed, p };
	struct err err = ERR_INIT;
	int rc;

	if (!p)
		return call_fail(c, CALL_busy, NULL, "out of memory");
	*p = (struct api_pending){ .call = c, .change = *change };
	c->waiting = p;
	c->resume = api_resumed;
	rc = ingest_submit(c->api->store, change->op, &done, NULL, &err);
	if (!rc)
		return CALL_WAIT; /* the result may be there already: p is the writer's until the wake */
	p->res.code = rc;
	p->res.err = err;
	return api_resumed(c);
}
