/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_tools.c: each tool asks the REST API through a source and writes sentences and lines. An empty result is a
 * sentence, so that a model does not take it for a failure. */
#include "web/cli/mcp_tools.h"

#include <stdlib.h>
#include <string.h>

#include "tracker/insight/goal.h"
#include "web/cli/cli.h"

enum { LIST_DEFAULT = 20, SERIES_DEFAULT = 50, METRICS_SHOWN = 6, KEYS_SHOWN = 40, COMPARED_ROWS = 60, WHY_MOST = 50 };

/* --- arguments and values --------------------------------------------------------------------------------------- */

static const char *argument_text(const struct mcp_call *c, const char *name)
{
	return json_string_value(json_object_get(c->arguments, name));
}

static int argument_count(const struct mcp_call *c, const char *name, int otherwise)
{
	json_t *v = json_object_get(c->arguments, name);

	return v ? (int)json_integer_value(v) : otherwise;
}

static int find_argument_run(struct mcp_call *c, char ret_id[33])
{
	return cli_find_run(c->s, argument_text(c, "run"), ret_id, c->err);
}

/* A number, the word of one that is not finite, or a dash. */
static const char *format_value(json_t *v, char text[32])
{
	if (json_is_number(v))
		return table_number(text, json_number_value(v));
	return json_is_string(v) ? json_string_value(v) : "-";
}

/* Series that a reader looks for first. */
static bool is_main_metric(const char *key)
{
	return strncmp(key, "system/", 7) && strncmp(key, "phase/", 6) && strncmp(key, "dptrack/", 8);
}

/* GET, parsed; the caller frees *ret. */
static int ask_json(struct mcp_call *c, struct buf *target, json_t **ret)
{
	return buf_failed(target) ? err_nomem(c->err, NULL) : cli_get_json(c->s, target->data, ret, c->err);
}

/* GET of the run that the argument names: "", "/alerts", … The caller frees *ret and *target, the run's address with
 * what; on failure both are freed. */
static int ask_about_run(struct mcp_call *c, const char *what, struct buf *target, json_t **ret)
{
	char id[33];
	int rc = find_argument_run(c, id);

	if (rc)
		return rc;
	buf_init(target, 1 << 16);
	buf_addf(target, "/api/v1/runs/%s%s", id, what);
	rc = ask_json(c, target, ret);
	if (rc)
		buf_done(target);
	return rc;
}

/* --- list_runs, best_run ---------------------------------------------------------------------------------------- */

static void write_run_line(struct buf *out, json_t *run)
{
	json_t *metrics = json_object_get(run, "metrics"), *sums;
	char status[256], number[32];
	const char *key;
	int shown = 0;

	buf_addf(out, "%.8s  %s  experiment %s  %s", cli_text(run, "id"), cli_text(run, "name"),
		 cli_text(run, "experiment"), cli_status_words(run, status));
	if (json_integer_value(json_object_get(run, "last_step")) >= 0)
		buf_addf(out, "  step %lld", (long long)json_integer_value(json_object_get(run, "last_step")));
	json_object_foreach(metrics, key, sums)
		if (is_main_metric(key) && shown++ < METRICS_SHOWN)
			buf_addf(out, "%s%s %s", shown == 1 ? "  " : ", ", key,
				 format_value(json_object_get(sums, "last"), number));
	if (shown > METRICS_SHOWN)
		buf_addf(out, ", and %d more metrics", shown - METRICS_SHOWN);
	buf_addc(out, '\n');
}

static void write_no_runs(struct mcp_call *c)
{
	const char *experiment = argument_text(c, "experiment"), *filter = argument_text(c, "filter");

	buf_adds(c->out, "No runs");
	if (experiment)
		buf_addf(c->out, " in experiment %s", experiment);
	if (filter)
		buf_addf(c->out, " match %s", filter);
	buf_adds(c->out, experiment || filter ? "." : " are recorded yet.");
}

/* Begins a query for runs with the arguments experiment and filter. */
static void begin_run_query(struct mcp_call *c, struct buf *target, int limit)
{
	buf_init(target, 1 << 20);
	buf_addf(target, "/api/v1/runs?limit=%d", limit);
	source_arg(target, "experiment", argument_text(c, "experiment"));
	source_arg(target, "filter", argument_text(c, "filter"));
}

static int list_runs_tool(struct mcp_call *c)
{
	json_t *reply = NULL, *run;
	struct buf target;
	size_t i;
	int rc;

	begin_run_query(c, &target, argument_count(c, "limit", LIST_DEFAULT));
	source_arg(&target, "order_by", argument_text(c, "order_by"));
	rc = ask_json(c, &target, &reply);
	if (!rc && !json_array_size(json_object_get(reply, "runs")))
		write_no_runs(c);
	json_array_foreach(json_object_get(reply, "runs"), i, run)
		write_run_line(c->out, run);
	if (json_is_string(json_object_get(reply, "next_page_token")))
		buf_adds(c->out, "More runs match: raise limit, or narrow them down with experiment or filter.\n");
	json_decref(reply);
	buf_done(&target);
	return rc;
}

/* Returns what the newest run that says anything says of the metric, into text; NULL: nothing. */
static const char *read_said_best(struct mcp_call *c, const char *key, char text[8])
{
	struct err ignored = ERR_INIT;
	json_t *reply = NULL;
	struct buf target, filter;
	const char *said;

	begin_run_query(c, &target, 1);
	buf_init(&filter, 1 << 16);
	buf_addf(&filter, "tags.\"" GOAL_TAG "%s\" LIKE 'm%%'", key);
	source_arg(&target, "filter", filter.data);
	if (!buf_failed(&target))
		cli_get_json(c->s, target.data, &reply, &ignored);
	said = cli_said_best(json_object_get(json_array_get(json_object_get(reply, "runs"), 0), "tags"), key);
	snprintf(text, 8, "%s", said ? said : "");
	json_decref(reply);
	buf_done(&filter);
	buf_done(&target);
	return *text ? text : NULL;
}

/* Returns the most suitable of the experiment's metrics, or NULL. What runs say of a metric counts, whatever it is. */
static const char *choose_goal_key(json_t *keys)
{
	json_t *key, *tag, *said = json_object();
	struct goal_choice goal = { 0 };
	size_t i;

	json_array_foreach(json_object_get(keys, "tags"), i, tag)
		json_object_set_new(said, json_string_value(tag), json_string("max"));
	json_array_foreach(json_object_get(keys, "metrics"), i, key)
		goal_choice_add(&goal, json_string_value(key), cli_said_best(said, json_string_value(key)), 1, 1);
	json_decref(said);
	return goal.key;
}

/* Settles the key, and which of its values is best. *ret_key is NULL without a metric; else the caller frees it. */
static int settle_goal(struct mcp_call *c, char **ret_key, enum goal_best *ret_best)
{
	const char *key = argument_text(c, "key"), *direction = argument_text(c, "direction");
	json_t *keys = NULL;
	struct buf target;
	char said[8];
	int rc = 0;

	if (direction && strcmp(direction, "max") && strcmp(direction, "min"))
		return err_set(c->err, ERR_USAGE, "direction %.40s: expected max or min", direction);
	if (!key) {
		buf_init(&target, 1 << 20);
		buf_adds(&target, "/api/v1/keys");
		source_arg(&target, "experiment", argument_text(c, "experiment"));
		rc = ask_json(c, &target, &keys);
		key = choose_goal_key(keys);
		buf_done(&target);
	}
	*ret_key = key ? strdup(key) : NULL;
	json_decref(keys);
	if (!*ret_key)
		return rc ? rc : key ? err_nomem(c->err, NULL) : 0;
	if (strchr(*ret_key, '"'))
		return err_set(c->err, ERR_USAGE, "key %.80s: a quote is not supported here", *ret_key);
	*ret_best = goal_best_of(*ret_key, direction ? direction : read_said_best(c, *ret_key, said));
	return 0;
}

static void write_best_run(struct mcp_call *c, json_t *runs, const char *key, enum goal_best best)
{
	json_t *run = json_array_get(runs, 0), *next = json_array_get(runs, 1), *value;
	const char *field = goal_best_word(best), *name;
	char a[32];

	value = json_object_get(json_object_get(json_object_get(run, "metrics"), key), field);
	buf_addf(c->out, "%s (%.8s, experiment %s, %s) is best: its %s %s is %s.\n", cli_text(run, "name"),
		 cli_text(run, "id"), cli_text(run, "experiment"), cli_text(run, "status"),
		 best == GOAL_MAX ? "largest" : "smallest", key, format_value(value, a));
	value = json_object_get(json_object_get(json_object_get(next, "metrics"), key), field);
	if (value)
		buf_addf(c->out, "Next: %s (%.8s) with %s.\n", cli_text(next, "name"), cli_text(next, "id"),
			 format_value(value, a));
	buf_adds(c->out, "Params:");
	json_object_foreach(json_object_get(run, "params"), name, value)
		buf_addf(c->out, " %s=%s", name, json_string_value(value));
	buf_addc(c->out, '\n');
}

/* Orders the runs that have the key by its best value. */
static int write_ordered_runs(struct mcp_call *c, const char *key, enum goal_best best)
{
	json_t *reply = NULL, *runs;
	struct buf target, order;
	int rc;

	begin_run_query(c, &target, 2);
	buf_init(&order, 1 << 16);
	buf_addf(&order, "metrics.\"%s\".%s %s", key, goal_best_word(best), best == GOAL_MAX ? "DESC" : "ASC");
	source_arg(&target, "order_by", order.data ? order.data : "");
	rc = ask_json(c, &target, &reply);
	runs = json_object_get(reply, "runs");
	if (!rc && !json_object_get(json_object_get(json_array_get(runs, 0), "metrics"), key))
		buf_addf(c->out, "No run has the metric %s.", key);
	else if (!rc && !best)
		buf_addf(c->out, "Whether a high or a low %s is better is unknown: set direction.", key);
	else if (!rc)
		write_best_run(c, runs, key, best);
	json_decref(reply);
	buf_done(&order);
	buf_done(&target);
	return rc;
}

static int best_run_tool(struct mcp_call *c)
{
	enum goal_best best = GOAL_UNKNOWN;
	char *key = NULL;
	int rc = settle_goal(c, &key, &best);

	if (!rc && !key)
		write_no_runs(c);
	else if (!rc)
		rc = write_ordered_runs(c, key, best);
	free(key);
	return rc;
}

/* --- why, compare_runs ------------------------------------------------------------------------------------------ */

/* Appends the ids of the runs that the argument names, as ?run=, or into the array where that is not NULL. */
static int add_argument_runs(struct mcp_call *c, struct buf *target, json_t *ids)
{
	json_t *names = json_object_get(c->arguments, "runs"), *name;
	char id[33];
	size_t i;
	int rc = 0;

	if (json_array_size(names) < 2 || json_array_size(names) > WHY_MOST)
		return err_set(c->err, ERR_USAGE, "runs: expected 2 to %d ids or names", WHY_MOST);
	json_array_foreach(names, i, name) {
		rc = cli_find_run(c->s, json_string_value(name), id, c->err);
		if (rc)
			return rc;
		if (ids)
			json_array_append_new(ids, json_string(id));
		else
			source_arg(target, "run", id);
	}
	return rc;
}

static int append_reply(void *arg, const char *bytes, size_t n, struct err *err)
{
	(void)err;
	buf_add(arg, bytes, n);
	return 0;
}

static int why_tool(struct mcp_call *c)
{
	struct buf target;
	int rc;

	buf_init(&target, 1 << 16);
	buf_adds(&target, "/api/v1/compare/why.md");
	rc = add_argument_runs(c, &target, NULL);
	if (!rc && buf_failed(&target))
		rc = err_nomem(c->err, NULL);
	if (!rc)
		rc = source_send(c->s, &(struct local_opts){ .method = "GET", .target = target.data },
				 &(struct local_sink){ append_reply, c->out }, c->err);
	buf_done(&target);
	return rc;
}

static void write_differing_params(struct buf *out, json_t *params, size_t runs)
{
	json_t *param;
	size_t i, k;

	json_array_foreach(params, i, param) {
		if (!json_is_true(json_object_get(param, "differs")))
			continue;
		buf_addf(out, "| %s |", cli_text(param, "key"));
		for (k = 0; k < runs; k++) {
			const char *text = json_string_value(json_array_get(json_object_get(param, "values"), k));

			buf_addf(out, " %s |", text ? text : "-");
		}
		buf_addc(out, '\n');
	}
}

static void write_metric_rows(struct buf *out, json_t *metrics, size_t runs)
{
	int rows = 0;
	json_t *metric;
	char text[32];
	size_t i, k;

	json_array_foreach(metrics, i, metric) {
		if (!is_main_metric(cli_text(metric, "key")) || rows++ >= COMPARED_ROWS)
			continue;
		buf_addf(out, "| %s |", cli_text(metric, "key"));
		for (k = 0; k < runs; k++)
			buf_addf(out, " %s |", format_value(json_array_get(json_object_get(metric, "last"), k), text));
		buf_addc(out, '\n');
	}
	if (rows > COMPARED_ROWS)
		buf_addf(out, "%d more metrics\n", rows - COMPARED_ROWS);
}

/* Writes a table in Markdown: a column for each run; the params that differ, then the last values. */
static void write_comparison(struct buf *out, json_t *reply)
{
	json_t *runs = json_object_get(reply, "runs"), *run;
	size_t i, n = json_array_size(runs);
	char status[256];

	buf_adds(out, "| |");
	json_array_foreach(runs, i, run)
		buf_addf(out, " %s (%.8s) |", cli_text(run, "name"), cli_text(run, "id"));
	buf_adds(out, "\n|---|");
	for (i = 0; i < n; i++)
		buf_adds(out, "---|");
	buf_adds(out, "\n| status |");
	json_array_foreach(runs, i, run)
		buf_addf(out, " %s |", cli_status_words(run, status));
	buf_addc(out, '\n');
	write_differing_params(out, json_object_get(reply, "params"), n);
	write_metric_rows(out, json_object_get(reply, "metrics"), n);
	buf_adds(out, "Params that are equal are left out; metrics are the last values.\n");
}

static int compare_runs_tool(struct mcp_call *c)
{
	json_t *ids = json_array(), *body = json_pack("{s:o}", "runs", ids), *reply = NULL;
	int rc = add_argument_runs(c, NULL, ids);

	if (rc)
		json_decref(body);
	else
		rc = cli_send(c->s, &(struct cli_request){ "POST", "/api/v1/compare", body, false }, &reply, c->err);
	if (!rc)
		write_comparison(c->out, reply);
	json_decref(reply);
	return rc;
}

/* --- get_series, diagnose, list_alerts -------------------------------------------------------------------------- */

/* Names the keys of a run in place of one that it does not have. */
static int write_known_keys(struct mcp_call *c, const char *id)
{
	json_t *run = NULL, *sums;
	struct buf target;
	const char *key;
	int rc, shown = 0;

	buf_init(&target, 1 << 16);
	buf_addf(&target, "/api/v1/runs/%s", id);
	rc = ask_json(c, &target, &run);
	buf_addf(c->out, "Run %s has no series %s. It has:", cli_text(run, "name"), argument_text(c, "key"));
	json_object_foreach(json_object_get(run, "metrics"), key, sums)
		if (is_main_metric(key) && shown++ < KEYS_SHOWN)
			buf_addf(c->out, "%s %s", shown == 1 ? "" : ",", key);
	buf_adds(c->out, shown ? ".\n" : " none yet.\n");
	json_decref(run);
	buf_done(&target);
	return rc;
}

static void write_series_lines(struct buf *out, json_t *series)
{
	json_t *buckets = json_object_get(series, "buckets"), *x = json_object_get(buckets, "x_last"), *step;
	char a[32], b[32], d[32];
	size_t i;

	buf_addf(out, "%lld points; each line is a range of steps: its last step, last value, smallest and largest:\n",
		 (long long)json_integer_value(json_object_get(series, "count")));
	json_array_foreach(x, i, step) {
		buf_addf(out, "%.15g %s %s %s\n", json_number_value(step),
			 format_value(json_array_get(json_object_get(buckets, "last"), i), a),
			 format_value(json_array_get(json_object_get(buckets, "min"), i), b),
			 format_value(json_array_get(json_object_get(buckets, "max"), i), d));
	}
}

static int get_series_tool(struct mcp_call *c)
{
	json_t *reply = NULL, *list;
	struct buf target;
	char id[33];
	int rc = find_argument_run(c, id);

	if (rc)
		return rc;
	buf_init(&target, 1 << 16);
	buf_addf(&target, "/api/v1/series?run=%s&rank=-1&buckets=%d", id, argument_count(c, "points", SERIES_DEFAULT));
	source_arg(&target, "key", argument_text(c, "key"));
	rc = ask_json(c, &target, &reply);
	list = json_object_get(reply, "series");
	if (!rc && !json_array_size(list))
		rc = write_known_keys(c, id);
	else if (!rc)
		write_series_lines(c->out, json_array_get(list, 0));
	json_decref(reply);
	buf_done(&target);
	return rc;
}

static void write_diagnosis_text(struct buf *out, json_t *reply)
{
	json_t *leaves = json_object_get(reply, "leaves"), *leaf, *over = json_object_get(reply, "overfitting");
	size_t i;

	if (!json_is_string(json_object_get(reply, "verdict")))
		buf_addf(out, "The run cannot be diagnosed: %s.\n", cli_text(reply, "problem"));
	else
		buf_addf(out, "%s\n", cli_text(reply, "sentence"));
	json_array_foreach(leaves, i, leaf)
		buf_addf(out, "- %s Found: %s. Usual: %s. Next: %s.\n", cli_text(leaf, "sentence"),
			 cli_text(leaf, "evidence"), cli_text(leaf, "usual"), cli_text(leaf, "action"));
	if (*cli_text(reply, "bound") && json_is_string(json_object_get(reply, "verdict")))
		buf_addf(out, "The rest is bound by %s.\n", cli_text(reply, "bound"));
	if (json_is_object(over))
		buf_addf(out, "%s\n", cli_text(over, "sentence"));
}

static int diagnose_tool(struct mcp_call *c)
{
	json_t *reply;
	struct buf target;
	int rc = ask_about_run(c, "/diagnosis", &target, &reply);

	if (rc)
		return rc;
	write_diagnosis_text(c->out, reply);
	json_decref(reply);
	buf_done(&target);
	return 0;
}

/* Alerts that the run's program sent. */
static int write_run_alerts(struct mcp_call *c)
{
	json_t *reply, *one;
	struct buf target;
	char time[32];
	size_t i;
	int rc = ask_about_run(c, "/alerts", &target, &reply);

	if (rc)
		return rc;
	json_array_foreach(json_object_get(reply, "alerts"), i, one)
		buf_addf(c->out, "%s  %s at step %lld: %s%s%s\n",
			 table_time(time, json_integer_value(json_object_get(one, "time"))), cli_text(one, "level"),
			 (long long)json_integer_value(json_object_get(one, "step")), cli_text(one, "title"),
			 *cli_text(one, "text") ? ": " : "", cli_text(one, "text"));
	if (!i)
		buf_addf(c->out, "Run %s has sent no alerts.", argument_text(c, "run"));
	json_decref(reply);
	buf_done(&target);
	return 0;
}

/* Alerts of rules, or of one run's program. */
static int list_alerts_tool(struct mcp_call *c)
{
	const char *experiment = argument_text(c, "experiment");
	json_t *reply = NULL, *one;
	struct buf target;
	char time[32];
	size_t i;
	int rc;

	if (argument_text(c, "run"))
		return write_run_alerts(c);
	buf_init(&target, 1 << 16);
	buf_addf(&target, "/api/v1/alerts?limit=%d", argument_count(c, "limit", LIST_DEFAULT));
	source_arg(&target, "experiment", experiment);
	rc = ask_json(c, &target, &reply);
	json_array_foreach(json_object_get(reply, "alerts"), i, one)
		buf_addf(c->out, "%s  %s (%.8s, experiment %s): %s\n",
			 table_time(time, json_integer_value(json_object_get(one, "time"))), cli_text(one, "run_name"),
			 cli_text(one, "run"), cli_text(one, "experiment"), cli_text(one, "text"));
	if (!rc && !i)
		buf_addf(c->out, "No rule has found anything%s%s.", experiment ? " in experiment " : "",
			 experiment ? experiment : "");
	json_decref(reply);
	buf_done(&target);
	return rc;
}

/* --- add_note, set_tag, archive_run ----------------------------------------------------------------------------- */

/* Sends a change and answers with a sentence. */
static int send_run_change(struct mcp_call *c, const struct cli_request *request, const char *what)
{
	json_t *reply = NULL;
	int rc = cli_send(c->s, request, &reply, c->err);

	if (!rc)
		buf_addf(c->out, "Run %s (%.8s): %s.", cli_text(reply, "name"), cli_text(reply, "id"), what);
	json_decref(reply);
	return rc;
}

/* Appends the text to the note, after an empty line. */
static int add_note_tool(struct mcp_call *c)
{
	json_t *run = NULL;
	const char *before;
	struct buf target, note;
	int rc = ask_about_run(c, "", &target, &run);

	if (rc)
		return rc;
	before = cli_text(run, "notes");
	buf_init(&note, 1 << 24);
	buf_addf(&note, "%s%s%s", before, *before ? "\n\n" : "", argument_text(c, "text"));
	rc = buf_failed(&note) ? err_nomem(c->err, NULL)
			       : send_run_change(c, &(struct cli_request){ "PATCH", target.data,
									   json_pack("{s:s}", "notes", note.data),
									   false },
						 "the text is at the end of its note");
	json_decref(run);
	buf_done(&note);
	buf_done(&target);
	return rc;
}

static int set_tag_tool(struct mcp_call *c)
{
	const char *value = argument_text(c, "value");
	struct buf target;
	char id[33];
	int rc = find_argument_run(c, id);

	if (rc)
		return rc;
	buf_init(&target, 1 << 16);
	buf_addf(&target, "/api/v1/runs/%s/tags/", id);
	source_escape(&target, argument_text(c, "key"));
	rc = send_run_change(c, &(struct cli_request){ "PUT", target.data,
						       json_pack("{s:s}", "value", value ? value : ""), false },
			     "the tag is set");
	buf_done(&target);
	return rc;
}

static int archive_run_tool(struct mcp_call *c)
{
	char id[33], target[64];
	int rc = find_argument_run(c, id);

	if (rc)
		return rc;
	snprintf(target, sizeof(target), "/api/v1/runs/%s", id);
	return send_run_change(c, &(struct cli_request){ .method = "DELETE", .target = target },
			       "it is archived; dptrack restore brings it back until dptrack gc removes it");
}

/* --- the list --------------------------------------------------------------------------------------------------- */

#define ARGUMENT_RUN { "run", MCP_TEXT, true, "id of the run, its first digits (at least 4), or its name" }
#define ARGUMENT_RUNS { "runs", MCP_LIST, true, "ids (the first digits suffice) or names of 2 to 50 runs, in order" }
#define ARGUMENT_EXPERIMENT { "experiment", MCP_TEXT, false, "name of an experiment (default: all)" }
#define ARGUMENT_LIMIT { "limit", MCP_COUNT, false, "largest number of results, 1 to 1000 (default: 20)" }
#define ARGUMENT_FILTER                                                                                     \
	{ "filter", MCP_TEXT, false,                                                                        \
	  "a condition, such as: metrics.\"train/loss\".last < 1 AND params.lr = 0.1 AND status = 'finished'" }

static const struct mcp_tool tools[] = {
	{ "list_runs", "Lists training runs with their status and newest values, newest first unless ordered.", false,
	  { ARGUMENT_EXPERIMENT, ARGUMENT_FILTER,
	    { "order_by", MCP_TEXT, false, "keys with ASC or DESC, such as: metrics.\"epoch/top1\".max DESC" },
	    ARGUMENT_LIMIT },
	  list_runs_tool },
	{ "best_run", "Names the run with the best value of a metric, and its params.", false,
	  { ARGUMENT_EXPERIMENT,
	    { "key", MCP_TEXT, false, "the metric (default: accuracy or loss, as recorded)" },
	    { "direction", MCP_TEXT, false, "max or min (default: what the runs say, else by the name)" },
	    ARGUMENT_FILTER },
	  best_run_tool },
	{ "why", "Explains the speedup from run to run: the factor, its interval, and the phases that changed.", false,
	  { ARGUMENT_RUNS }, why_tool },
	{ "compare_runs", "Compares runs: the params that differ, and the metrics.", false,
	  { ARGUMENT_RUNS }, compare_runs_tool },
	{ "get_series", "Reads a metric of a run over its steps.", false,
	  { ARGUMENT_RUN, { "key", MCP_TEXT, true, "the metric, such as train/loss" },
	    { "points", MCP_COUNT, false, "largest number of lines, 1 to 1000 (default: 50)" } },
	  get_series_tool },
	{ "diagnose", "Says what limits the speed of a run, with evidence and the next action.", false,
	  { ARGUMENT_RUN }, diagnose_tool },
	{ "list_alerts", "Lists what alert rules found, newest first; with a run the alerts that its program sent.",
	  false,
	  { ARGUMENT_EXPERIMENT, { "run", MCP_TEXT, false, "id or name of a run (default: none)" }, ARGUMENT_LIMIT },
	  list_alerts_tool },
	{ "add_note", "Appends a text to the note of a run.", true,
	  { ARGUMENT_RUN, { "text", MCP_TEXT, true, "the text, in Markdown" } }, add_note_tool },
	{ "set_tag", "Sets a tag of a run.", true,
	  { ARGUMENT_RUN, { "key", MCP_TEXT, true, "name of the tag" },
	    { "value", MCP_TEXT, false, "its value (default: empty)" } },
	  set_tag_tool },
	{ "archive_run", "Hides a run from lists. It can be restored.", true, { ARGUMENT_RUN }, archive_run_tool },
};

const struct mcp_tool *mcp_tools(size_t *ret_n)
{
	*ret_n = sizeof(tools) / sizeof(tools[0]);
	return tools;
}
