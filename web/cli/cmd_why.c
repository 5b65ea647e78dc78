/* cmd_why.c: `dptrack compare --why`. The server finds; this file prints. */
#include "web/cli/cmd_why.h"

#include <math.h>
#include <string.h>

#include "web/cli/table.h"

static double number_of(json_t *object, const char *key)
{
	json_t *v = json_object_get(object, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

/* Milliseconds with a sign. */
static const char *change_text(char *text, double seconds)
{
	snprintf(text, 32, "%+.4g", 1e3 * seconds);
	return text;
}

static const char *interval_text(char *text, json_t *part)
{
	double low = number_of(part, "low"), high = number_of(part, "high");

	if (isnan(low))
		return NULL;
	snprintf(text, 64, "%+.3g to %+.3g", 1e3 * low, 1e3 * high);
	return text;
}

static void part_row(struct table *t, const char *name, json_t *part, json_t *runs, size_t pair)
{
	char text[64];

	table_cell(t, name);
	for (size_t i = pair; i < pair + 2; i++) {
		json_t *run = json_array_get(runs, i), *phases = json_object_get(run, "phases");

		table_cellf(t, "%.4g",
			    1e3 * (strcmp(name, "all") ? number_of(phases, name) : number_of(run, "seconds")));
	}
	table_cell(t, change_text(text, number_of(part, "seconds")));
	table_cell(t, interval_text(text, part));
}

/* Phases in milliseconds a sample, those that no run has left out. */
static void print_parts(json_t *root, size_t pair)
{
	json_t *runs = json_object_get(root, "runs"), *p = json_array_get(json_object_get(root, "pairs"), pair), *part;
	struct table *t = table_new();
	const char *name;

	if (!t)
		return;
	table_column(t, "ms a sample", false);
	table_column(t, cli_text(json_array_get(runs, pair), "name"), true);
	table_column(t, cli_text(json_array_get(runs, pair + 1), "name"), true);
	table_column(t, "difference", true);
	table_column(t, "95 %", true);
	json_object_foreach(json_object_get(p, "phases"), name, part)
		if (number_of(json_object_get(json_array_get(runs, pair), "phases"), name) != 0 ||
		    number_of(json_object_get(json_array_get(runs, pair + 1), "phases"), name) != 0)
			part_row(t, name, part, runs, pair);
	part_row(t, "all", json_object_get(p, "difference"), runs, pair);
	table_print(t, stdout, false);
	table_free(t);
}

static void print_text(const char *before, const char *text)
{
	fputs(before, stdout);
	table_text(stdout, text, strlen(text));
}

static void print_params(json_t *params)
{
	size_t i, n = json_array_size(params);
	json_t *p;

	if (n)
		printf("changed: ");
	json_array_foreach(params, i, p) {
		const char *a = json_string_value(json_object_get(p, "a")),
			*b = json_string_value(json_object_get(p, "b"));

		print_text(i ? ", " : "", cli_text(p, "key"));
		print_text(" ", a ? a : "none");
		print_text(" -> ", b ? b : "none");
	}
	if (n > 1)
		printf("\nwarning: %zu params changed at once; which of them did it this cannot tell", n);
	printf("%s", n ? "\n" : "");
}

static void print_metric(json_t *metric)
{
	char a[32], b[32];

	if (!json_is_object(metric))
		return;
	print_text("", cli_text(metric, "key"));
	printf(": %s -> %s%s\n", table_number(a, number_of(metric, "a")),
	       table_number(b, number_of(metric, "b")),
	       json_is_true(json_object_get(metric, "worse")) ? ", worse than repeats explain" : "");
}

/* What every side rests on. */
static void print_sides(json_t *root)
{
	json_t *run;
	char text[64];
	size_t i;

	json_array_foreach(json_object_get(root, "runs"), i, run) {
		json_t *repeats = json_object_get(run, "repeats"), *own = json_array_get(repeats, 0);
		size_t more = json_array_size(repeats) - 1;

		print_text("", cli_text(run, "name"));
		printf(": %lld steps, %lld of warm-up left out",
		       (long long)json_integer_value(json_object_get(own, "steps")),
		       (long long)json_integer_value(json_object_get(own, "warmup")));
		printf("%s%s\n", more ? ", with " : "", more ? cli_count(text, more, "repeat") : "");
	}
	printf("warm-up: %s\n", cli_text(root, "warmup_rule"));
}

static void waterfall_row(struct table *t, json_t *run, json_t *pair)
{
	double low = number_of(pair, "low");

	table_cell(t, cli_text(run, "name"));
	table_cellf(t, "%.4g", 1e3 * number_of(run, "seconds"));
	if (!pair) {
		table_cell(t, NULL);
		table_cell(t, NULL);
		table_cell(t, NULL);
		return;
	}
	table_cellf(t, "%.2f", number_of(pair, "factor"));
	if (isnan(low))
		table_cell(t, NULL);
	else
		table_cellf(t, "%.2f-%.2f", low, number_of(pair, "high"));
	table_cellf(t, "%.2f", number_of(pair, "product"));
}

/* Several changes, one a row. */
static void print_waterfall(json_t *root)
{
	json_t *pairs = json_object_get(root, "pairs"), *run;
	struct table *t = table_new();
	size_t i;

	if (!t)
		return;
	table_column(t, "run", false);
	table_column(t, "ms a sample", true);
	table_column(t, "factor", true);
	table_column(t, "95 %", true);
	table_column(t, "since the first", true);
	json_array_foreach(json_object_get(root, "runs"), i, run)
		waterfall_row(t, run, i ? json_array_get(pairs, i - 1) : NULL);
	table_print(t, stdout, false);
	table_free(t);
	printf("\n");
}

static void print_report(json_t *root)
{
	json_t *pairs = json_object_get(root, "pairs"), *p;
	size_t i;

	if (json_array_size(pairs) > 1)
		print_waterfall(root);
	json_array_foreach(pairs, i, p) {
		print_text("", cli_text(p, "sentence"));
		printf("\n");
		print_params(json_object_get(p, "params"));
		print_metric(json_object_get(p, "metric"));
		printf("\n");
		print_parts(root, i);
		printf("\n");
	}
	print_sides(root);
}

int why_print(struct source *s, const struct why_opts *o, const struct flag_list *words, struct err *err)
{
	const char *suffix = o->csv ? ".csv" : o->markdown ? ".md" : o->svg ? ".svg" : "";
	struct buf target;
	json_t *root;
	char id[33];
	int rc = 0;

	buf_init(&target, 65536);
	buf_addf(&target, "/api/v1/compare/why%s", suffix);
	for (size_t i = 0; !rc && i < words->count; i++) {
		rc = cli_find_run(s, words->items[i], id, err);
		if (!rc)
			source_arg(&target, "run", id);
	}
	if (!rc && (o->json || *suffix)) {
		rc = cli_get_print(s, target.data, err);
	} else if (!rc) {
		rc = cli_get_json(s, target.data, &root, err);
		if (!rc) {
			print_report(root);
			json_decref(root);
		}
	}
	buf_done(&target);
	return rc;
}
