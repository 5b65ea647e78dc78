/* SPDX-License-Identifier: Apache-2.0 */
/* wandb_site.c: the addresses that W&B's client prints lead to the page. */
#include "web/api/wandb/wandb.h"

#include <string.h>

static enum call_next redirect_to(struct call *c, const char *to)
{
	c->status = 302;
	c->reply.location = to;
	return CALL_DONE;
}

/* /ENTITY/PROJECT/runs/ID. The page asks for the run, with its own credentials. */
enum call_next on_wandb_run_page(struct call *c)
{
	const char *entity = c->address.vars[0], *project = c->address.vars[1], *name = c->address.vars[2];
	char id[33];

	wandb_id(id, "wandb %s/%s/%s", entity, project, name);
	return redirect_to(c, arena_printf(c->arena, "../../../?r=%s", call_is_run_id(name) ? name : id));
}

/* /ENTITY/PROJECT, if there is such a project; else a file of the page. */
enum call_next on_wandb_project_page(struct call *c)
{
	const char *entity = c->address.vars[0], *project = c->address.vars[1];

	json_t *there = wandb_project_json(c, entity, project);

	if (!there) {
		c->address.rest = arena_printf(c->arena, "%s/%s", entity, project);
		return c->status == 200 ? on_page_get(c) : CALL_DONE;
	}
	json_decref(there);
	return redirect_to(
		c, arena_printf(c->arena, "../?e=%s", wandb_escape(c, wandb_experiment(c, entity, project), "-._~")));
}

/* /authorize: after the sign-in the page shows the tokens that its user may see. */
enum call_next on_wandb_authorize(struct call *c)
{
	return redirect_to(c, "./");
}
