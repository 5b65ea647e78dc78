/* kernels.c: choices travel from rank 0 as one text. */
#include "trainer/program/kernels.h"

#include <stdlib.h>
#include <string.h>

void kernels_add(void *user, const char *key, const char *name)
{
	buf_add(user, key, strlen(key) + 1);
	buf_add(user, name, strlen(name) + 1);
}

static int choose_all(struct engine *e, const char *text, size_t n, struct err *err)
{
	int rc = 0;

	for (size_t at = 0; !rc && at < n;) {
		const char *key = text + at, *name = key + strlen(key) + 1;

		at += strlen(key) + strlen(name) + 2;
		rc = e->backend->choose(e->module, key, name, err);
	}
	return rc;
}

/* A text that did not fit is empty: everybody times for himself. */
int kernels_share(struct engine *e, const struct buf *text, struct err *err)
{
	struct comm *c = e->lane[STREAM_COMPUTE];
	bool mine = engine_is_root(e) && !buf_failed(text);
	int64_t n = mine ? (int64_t)text->len : 0;
	char *all;
	int rc = c->ops->broadcast(c, &n, sizeof(n), 0, err);

	if (rc || !n)
		return rc;
	all = calloc((size_t)n + 1, 1);
	if (!all)
		return err_set(err, ERR_NOMEM, "out of memory: kernel choices");
	if (mine)
		memcpy(all, text->data, (size_t)n);
	rc = c->ops->broadcast(c, all, (size_t)n, 0, err);
	if (!rc)
		rc = choose_all(e, all, (size_t)n, err);
	free(all);
	return rc;
}

int kernels_plan(struct engine *e, struct err *err)
{
	struct buf text;
	int rc = 0;

	if (e->seat->world == 1 || !e->backend->choose || e->cfg->deterministic)
		return engine_plan(e, err);
	buf_init(&text, KERNELS_BYTES_MAX);
	if (engine_is_root(e)) {
		rc = engine_plan(e, err);
		e->backend->choices(e->module, kernels_add, &text);
	}
	if (!rc)
		rc = kernels_share(e, &text, err);
	if (!rc && !engine_is_root(e))
		rc = engine_plan(e, err);
	buf_done(&text);
	return rc;
}
