/* cmd_tag.c: `dptrack tag`: sets, removes and lists tags of runs. */
#include "web/cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include "web/cli/choose.h"
#include "web/cli/table.h"

struct tag {
	struct cli_common common;
	struct choose_opts pick;
	struct flag_list removed;
	const char **sets; /* KEY=VALUE */
	size_t set_count;
};

static void tag_target(struct buf *target, json_t *run, const char *key, size_t key_len)
{
	char *copy = strndup(key, key_len);

	buf_init(target, 65536);
	buf_addf(target, "/api/v1/runs/%.32s/tags/", cli_text(run, "id"));
	if (copy)
		source_escape(target, copy);
	free(copy);
}

static int set_tag(struct source *s, json_t *run, const char *set, struct err *err)
{
	const char *eq = strchr(set, '=');
	json_t *body = json_pack("{s:s}", "value", eq + 1), *reply = NULL;
	char *text = body ? json_dumps(body, 0) : NULL;
	struct buf target;
	int rc;

	tag_target(&target, run, set, (size_t)(eq - set));
	if (!text)
		rc = err_set(err, ERR_USAGE, "tag: the value of %.*s must be UTF-8", (int)(eq - set), set);
	else
		rc = source_json(s, &(struct local_opts){ .method = "PUT", .target = target.data, .body = text },
				 &reply, err);
	json_decref(reply);
	json_decref(body);
	free(text);
	buf_done(&target);
	return rc;
}

static int remove_tag(struct source *s, json_t *run, const char *key, struct err *err)
{
	json_t *reply = NULL;
	struct buf target;
	int rc;

	tag_target(&target, run, key, strlen(key));
	rc = source_json(s, &(struct local_opts){ .method = "DELETE", .target = target.data }, &reply, err);
	json_decref(reply);
	buf_done(&target);
	return rc;
}

static int change(struct source *s, const struct tag *o, json_t *runs, struct err *err)
{
	json_t *run;
	size_t i, k;
	int rc = 0;

	json_array_foreach(runs, i, run) {
		for (k = 0; k < o->set_count && !rc; k++)
			rc = set_tag(s, run, o->sets[k], err);
		for (k = 0; k < o->removed.count && !rc; k++)
			rc = remove_tag(s, run, o->removed.items[k], err);
		if (rc)
			return rc;
	}
	return 0;
}

static void print_json(json_t *runs)
{
	json_t *root = json_object(), *run;
	size_t i;

	json_array_foreach(runs, i, run)
		json_object_set(root, cli_text(run, "id"), json_object_get(run, "tags"));
	json_dumpf(root, stdout, 0);
	printf("\n");
	json_decref(root);
}

static void print_tags(const struct tag *o, json_t *runs)
{
	struct table *t = table_new();
	json_t *run, *value;
	const char *key;
	size_t i;

	if (!t)
		return;
	table_column(t, "id", false);
	table_column(t, "name", false);
	table_column(t, "tag", false);
	table_column(t, "value", false);
	json_array_foreach(runs, i, run)
		json_object_foreach(json_object_get(run, "tags"), key, value) {
			if (o->common.csv)
				table_cell(t, cli_text(run, "id"));
			else
				table_cellf(t, "%.8s", cli_text(run, "id"));
			table_cell(t, cli_text(run, "name"));
			table_cell(t, key);
			table_cell(t, json_string_value(value));
		}
	table_print(t, stdout, o->common.csv);
	table_free(t);
}

static int act(const struct tag *o, struct err *err)
{
	struct source *s = NULL;
	json_t *runs = NULL;
	int rc = source_open(&s, &o->common.source, err);

	if (!rc)
		rc = choose_runs(s, &o->pick, &runs, err);
	if (!rc && (o->set_count || o->removed.count))
		rc = change(s, o, runs, err);
	else if (!rc && o->common.json)
		print_json(runs);
	else if (!rc)
		print_tags(o, runs);
	json_decref(runs);
	source_close(s);
	return rc;
}

/* Words with = are tags to set, the others name runs. */
static int sort_words(struct tag *o, const struct flag_list *words, struct err *err)
{
	const char **names = words->items;
	size_t i;

	for (i = 0; i < words->count; i++) {
		const char *word = words->items[i];

		if (*word == '=')
			return err_set(err, ERR_USAGE, "tag %s: a tag has a key: KEY=VALUE", word);
		if (strchr(word, '='))
			o->sets[o->set_count++] = word;
		else
			names[o->pick.name_count++] = word;
	}
	o->pick.names = names;
	return 0;
}

static int tag_run(int argc, char **argv, struct err *err)
{
	struct tag o = { .sets = calloc((size_t)argc + 1, sizeof(*o.sets)),
			 .removed = { .items = calloc((size_t)argc + 1, sizeof(*o.removed.items)) } };
	const struct flag table[] = {
		CHOOSE_FLAGS(&o.pick),
		{ "remove", FLAG_LIST, "KEY", "take this tag away; may be given again", &o.removed, 0, 0 },
		CLI_COMMON_FLAGS(&o.common),
		{ 0 },
	};
	struct cli_line line = { .cmd = &cli_tag, .table = table, .help = &o.common.help, .words_max = (size_t)argc };
	int rc = o.sets && o.removed.items ? cli_line_read(&line, argc, argv, err)
					   : err_set(err, ERR_NOMEM, "out of memory");

	if (!rc)
		rc = sort_words(&o, &line.words, err);
	if (!rc)
		rc = act(&o, err);
	cli_line_done(&line);
	free(o.sets);
	free(o.removed.items);
	return rc > 0 ? 0 : rc;
}

const struct cli_command cli_tag = { .name = "tag",
				     .group = "Edit",
				     .words = "[RUN...] [KEY=VALUE...]",
				     .summary = "set, remove or list tags of runs",
				     .run = tag_run };
