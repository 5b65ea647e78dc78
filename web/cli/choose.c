/* choose.c: resolves names, prefixes of ids and filters to runs. */
#include "web/cli/choose.h"

#include <string.h>

enum { CHOOSE_PAGE = 1000, CHOOSE_SHOWN = 5 };

static bool has_chosen_run(json_t *runs, const char *id)
{
	json_t *run;
	size_t i;

	json_array_foreach(runs, i, run)
		if (!strcmp(cli_text(run, "id"), id))
			return true;
	return false;
}

/* Appends every page of the list at the target. */
static int add_listed_runs(struct source *s, struct buf *target, json_t *to, struct err *err)
{
	size_t base = target->len, i;
	const char *token = "";
	json_t *page = NULL, *run;
	int rc = 0;

	while (!rc && token) {
		target->len = base;
		if (*token)
			source_arg(target, "page_token", token);
		json_decref(page);
		page = NULL;
		rc = buf_failed(target) ? err_set(err, ERR_NOMEM, "out of memory")
					: cli_get_json(s, target->data, &page, err);
		json_array_foreach(json_object_get(page, "runs"), i, run)
			if (!has_chosen_run(to, cli_text(run, "id")))
				json_array_append(to, run);
		token = json_string_value(json_object_get(page, "next_page_token"));
		target->data[base] = '\0';
	}
	json_decref(page);
	return rc;
}

static void begin_run_list(struct buf *target, const struct choose_opts *o)
{
	char limit[16];

	buf_init(target, 1 << 20);
	buf_adds(target, "/api/v1/runs");
	snprintf(limit, sizeof(limit), "%d", CHOOSE_PAGE);
	source_arg(target, "limit", limit);
	source_arg(target, "deleted", o->deleted ? "only" : "no");
}

/* Appends the run whose id has the prefix `name`, or whose name it is. */
static int add_named_run(struct source *s, const struct choose_opts *o, const char *name, json_t *to, struct err *err)
{
	bool id = strlen(name) >= 4 && strlen(name) <= 32 && strspn(name, "0123456789abcdef") == strlen(name);
	json_t *found = json_array();
	struct buf target, filter;
	int rc = 0;

	if (id) {
		begin_run_list(&target, o);
		buf_init(&filter, 65536);
		buf_addf(&filter, "attributes.run_id LIKE '%s%%'", name);
		source_arg(&target, "filter", filter.data ? filter.data : "");
		rc = add_listed_runs(s, &target, found, err);
		buf_done(&filter);
		buf_done(&target);
	}
	if (!rc && !json_array_size(found)) {
		begin_run_list(&target, o);
		buf_init(&filter, 65536);
		cli_filter_name(&filter, name);
		source_arg(&target, "filter", filter.data ? filter.data : "");
		rc = add_listed_runs(s, &target, found, err);
		buf_done(&filter);
		buf_done(&target);
	}
	if (!rc && !json_array_size(found))
		rc = err_set(err, ERR_NOENT, "no %srun %s: use an id, the first digits of one, or a name",
			     o->deleted ? "deleted " : "", name);
	else if (!rc && json_array_size(found) > 1)
		rc = err_set(
			err, ERR_USAGE,
			"%zu runs match %s: use an id (see dptrack ls), or select all of them with --filter",
			json_array_size(found), name);
	else if (!rc && !has_chosen_run(to, cli_text(json_array_get(found, 0), "id")))
		json_array_append(to, json_array_get(found, 0));
	json_decref(found);
	return rc;
}

int choose_runs(struct source *s, const struct choose_opts *o, json_t **ret, struct err *err)
{
	json_t *runs = json_array();
	struct buf target;
	size_t i;
	int rc = 0;

	if (!o->name_count && !o->experiment && !o->filter)
		rc = err_set(err, ERR_USAGE, "no runs selected: use ids or names, --experiment or --filter");
	for (i = 0; i < o->name_count && !rc; i++)
		rc = add_named_run(s, o, o->names[i], runs, err);
	if (!rc && (o->experiment || o->filter)) {
		begin_run_list(&target, o);
		if (o->experiment)
			source_arg(&target, "experiment", o->experiment);
		if (o->filter)
			source_arg(&target, "filter", o->filter);
		rc = add_listed_runs(s, &target, runs, err);
		buf_done(&target);
	}
	if (rc)
		json_decref(runs);
	else
		*ret = runs;
	return rc;
}
