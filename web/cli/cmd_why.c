/* cmd_why.c: `dptrack compare --why`: prints the comparison that the server computes. */
#include "web/cli/cmd_why.h"

#include <math.h>
#include <string.h>

#include "web/cli/table.h"

static double json_number_or_nan(json_t *object, const char *key)
{
	json_t *v = json_object_get(object, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

/* Milliseconds with a sign. */
static const char *format_change_ms(char *text, double seconds)
{
	snprintf(text, 32, "%+.4g", 1e3 * seconds);
	return text;
}

static const char *format_interval_ms(char *text, json_t *part)
{
	double low = json_number_or_nan(part, "low"), high = json_number_or_nan(part, "high");

	if (isnan(low))
		return NULL;
	snprintf(text, 64, "%+.3g to %+.3g", 1e3 * low, 1e3 * high);
	return text;
}

static void add_phase_row(struct table *t, const char *name, json_t *part, json_t *runs, size_t pair)
{
	char text[64];

	table_cell(t, name);
	for (size_t i = pair; i < pair + 2; i++) {
		json_t *run = json_array_get(runs, i), *phases = json_object_get(run, "phases");

		table_cellf(t, "%.4g",
			    1e3 * (strcmp(name, "all") ? json_number_or_nan(phases, name)
						       : json_number_or_nan(run, "seconds")));
	}
	table_cell(t, format_change_ms(text, json_number_or_nan(part, "seconds")));
	table_cell(t, format_interval_ms(text, part));
}

/* Prints the phases in milliseconds per sample, without those that neither run has. */
static void print_phase_table(json_t *root, size_t pair)
{
	json_t *runs = json_object_get(root, "runs"), *p = json_array_get(json_object_get(root, "pairs"), pair), *part;
	struct table *t = table_new();
	const char *name;

	if (!t)
		return;
	table_column(t, "ms per sample", false);
	table_column(t, cli_text(json_array_get(runs, pair), "name"), true);
	table_column(t, cli_text(json_array_get(runs, pair + 1), "name"), true);
	table_column(t, "difference", true);
	table_column(t, "95 %", true);
	json_object_foreach(json_object_get(p, "phases"), name, part)
		if (json_number_or_nan(json_object_get(json_array_get(runs, pair), "phases"), name) != 0 ||
		    json_number_or_nan(json_object_get(json_array_get(runs, pair + 1), "phases"), name) != 0)
			add_phase_row(t, name, part, runs, pair);
	add_phase_row(t, "all", json_object_get(p, "difference"), runs, pair);
	table_print(t, stdout, false);
	table_free(t);
}

static void print_plain_text(const char *before, const char *text)
{
	fputs(before, stdout);
	table_text(stdout, text, strlen(text));
}

static void print_param_changes(json_t *params)
{
	size_t i, n = json_array_size(params);
	json_t *p;

	if (n)
		printf("changed: ");
	json_array_foreach(params, i, p) {
		const char *a = json_string_value(json_object_get(p, "a")),
			*b = json_string_value(json_object_get(p, "b"));

		print_plain_text(i ? ", " : "", cli_text(p, "key"));
		print_plain_text(" ", a ? a : "none");
		print_plain_text(" -> ", b ? b : "none");
	}
	if (n > 1)
		printf("\nwarning: %zu params changed at once: their effects cannot be separated", n);
	printf("%s", n ? "\n" : "");
}

static void print_metric_change(json_t *metric)
{
	char a[32], b[32];

	if (!json_is_object(metric))
		return;
	print_plain_text("", cli_text(metric, "key"));
	printf(": %s -> %s%s\n", table_number(a, json_number_or_nan(metric, "a")),
	       table_number(b, json_number_or_nan(metric, "b")),
	       json_is_true(json_object_get(metric, "worse")) ? ", worse than repeats explain" : "");
}

/* Prints the number of steps and repeats of every run. */
static void print_side_basis(json_t *root)
{
	json_t *run;
	char text[64];
	size_t i;

	json_array_foreach(json_object_get(root, "runs"), i, run) {
		json_t *repeats = json_object_get(run, "repeats"), *own = json_array_get(repeats, 0);
		size_t more = json_array_size(repeats) - 1;

		print_plain_text("", cli_text(run, "name"));
		printf(": %lld steps, %lld of warm-up excluded",
		       (long long)json_integer_value(json_object_get(own, "steps")),
		       (long long)json_integer_value(json_object_get(own, "warmup")));
		printf("%s%s\n", more ? ", with " : "", more ? cli_count(text, more, "repeat") : "");
	}
	printf("warm-up: %s\n", cli_text(root, "warmup_rule"));
}

static void add_waterfall_row(struct table *t, json_t *run, json_t *pair)
{
	double low = json_number_or_nan(pair, "low");

	table_cell(t, cli_text(run, "name"));
	table_cellf(t, "%.4g", 1e3 * json_number_or_nan(run, "seconds"));
	if (!pair) {
		table_cell(t, NULL);
		table_cell(t, NULL);
		table_cell(t, NULL);
		return;
	}
	table_cellf(t, "%.2f", json_number_or_nan(pair, "factor"));
	if (isnan(low))
		table_cell(t, NULL);
	else
		table_cellf(t, "%.2f-%.2f", low, json_number_or_nan(pair, "high"));
	table_cellf(t, "%.2f", json_number_or_nan(pair, "product"));
}

/* Prints several changes, one per row. */
static void print_waterfall_table(json_t *root)
{
	json_t *pairs = json_object_get(root, "pairs"), *run;
	struct table *t = table_new();
	size_t i;

	if (!t)
		return;
	table_column(t, "run", false);
	table_column(t, "ms per sample", true);
	table_column(t, "factor", true);
	table_column(t, "95 %", true);
	table_column(t, "since the first", true);
	json_array_foreach(json_object_get(root, "runs"), i, run)
		add_waterfall_row(t, run, i ? json_array_get(pairs, i - 1) : NULL);
	table_print(t, stdout, false);
	table_free(t);
	printf("\n");
}

static void print_why_report(json_t *root)
{
	json_t *pairs = json_object_get(root, "pairs"), *p;
	size_t i;

	if (json_array_size(pairs) > 1)
		print_waterfall_table(root);
	json_array_foreach(pairs, i, p) {
		print_plain_text("", cli_text(p, "sentence"));
		printf("\n");
		print_param_changes(json_object_get(p, "params"));
		print_metric_change(json_object_get(p, "metric"));
		printf("\n");
		print_phase_table(root, i);
		printf("\n");
	}
	print_side_basis(root);
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
			print_why_report(root);
			json_decref(root);
		}
	}
	buf_done(&target);
	return rc;
}
