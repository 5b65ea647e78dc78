/* SPDX-License-Identifier: Apache-2.0 */
/* bench_compare.c: `dptrain bench --compare-with FLAGS --rounds R` and `--link LINK;LINK;…`, and the measurement of
 * `dptrain doctor --try`. The sides run in new processes, in turn, so that a change of the machine's speed affects
 * both. Knows no model and no engine: it reads the steps that these commands print with --json. */
#include <stdlib.h>
#include <string.h>

#include "tracker/base/json_print.h"
#include "tracker/base/log.h"
#include "tracker/mem/mem.h"
#include "trainer/tools/child.h"
#include "trainer/tools/subcommands.h"

#define OUTPUT_MAX ((size_t)256 << 20)
#define SIDE_A "without"
#define TRY_SECONDS "8" /* length of a run of dptrain doctor --try */
#define TRY_ROUNDS 3

struct bench_comparison {
	const struct job *job;
	const char *flags;	 /* additional flags of the second side */
	const char *const *both; /* words appended to the command line of both sides, up to a NULL */
	char **words;		 /* flags as words */
	size_t n_words;
	char *text; /* storage of the words */
	struct step_time *paces[2];
	int64_t rounds;
};

/* Splits words like a shell: at blanks, except in '…' and "…". */
static int split_shell_words(struct bench_comparison *a, struct err *err)
{
	const char *flags = a->flags;
	char *to, quote = '\0';

	a->text = mem_strdup(flags);
	a->words = mem_array(strlen(flags) + 1, sizeof(*a->words));
	to = a->text;
	for (const char *at = flags; *at;) {
		at += strspn(at, " \t");
		if (!*at)
			break;
		a->words[a->n_words++] = to;
		for (; *at && (quote || !strchr(" \t", *at)); at++) {
			if (quote ? *at == quote : *at == '\'' || *at == '"')
				quote = quote ? '\0' : *at;
			else
				*to++ = *at;
		}
		at += *at != '\0';
		*to++ = '\0';
	}
	if (quote)
		return err_set(err, ERR_USAGE, "--compare-with '%.200s': unbalanced quotation mark: close it", flags);
	return a->n_words ? 0 : err_set(err, ERR_USAGE, "--compare-with: name the flags of the second side");
}

/* The command line of one side. *ret is freed by the caller. */
static int side_command_line(const struct bench_comparison *a, int side, char ***ret)
{
	size_t n = 0, n_both = 0;
	char **argv;

	while (a->both[n_both])
		n_both++;
	argv = mem_array((size_t)a->job->argc + a->n_words + n_both + 2, sizeof(*argv));
	for (int i = 0; i < a->job->argc; i++)
		argv[n++] = a->job->argv[i];
	for (size_t i = 0; side == 1 && i < a->n_words; i++)
		argv[n++] = a->words[i];
	for (size_t i = 0; i < n_both; i++)
		argv[n++] = (char *)(uintptr_t)a->both[i];
	argv[n++] = "--json";
	*ret = argv;
	return (int)n;
}

/* Reports bad flags of the second side before the first one is measured. */
static int check_second_side(const struct bench_comparison *a, struct err *err)
{
	struct run_config *cfg = NULL;
	char **argv;
	const int argc = side_command_line(a, 1, &argv);
	int rc = config_parse(&cfg, argc, argv, err);

	if (rc)
		err_prefix(err, "--compare-with");
	config_free(cfg);
	free(argv);
	return rc;
}

/* Runs one side once. */
static int run_side_process(const struct bench_comparison *a, int side, struct buf *out, int *ret_code, struct err *err)
{
	char **argv;
	int rc;

	side_command_line(a, side, &argv);
	rc = child_run(argv, out, ret_code, err);
	free(argv);
	return rc;
}

static int run_side(struct bench_comparison *a, int64_t round, int side, int *ret_code, struct err *err)
{
	struct buf out;
	int rc;

	buf_init(&out, OUTPUT_MAX);
	rc = run_side_process(a, side, &out, ret_code, err);
	if (!rc && !*ret_code)
		rc = child_pace(&out, &a->paces[side][round], err);
	buf_done(&out);
	if (!rc && !*ret_code)
		log_info("round %lld of %lld, %s: %.5g ms a sample", (long long)round + 1, (long long)a->rounds,
			 side ? a->flags : SIDE_A, 1e3 * a->paces[side][round].seconds);
	return rc;
}

/* Runs A B, then B A, and so on. */
static int run_rounds(struct bench_comparison *a, int *ret_code, struct err *err)
{
	int rc = 0;

	for (int side = 0; side < 2; side++)
		a->paces[side] = mem_array((size_t)a->rounds, sizeof(*a->paces[side]));
	for (int64_t r = 0; !rc && !*ret_code && r < a->rounds; r++)
		for (int i = 0; !rc && !*ret_code && i < 2; i++)
			rc = run_side(a, r, (int)((r + i) % 2), ret_code, err);
	return rc;
}

static double side_mean(const struct bench_comparison *a, int side, int phase)
{
	double sum = 0;

	for (int64_t r = 0; r < a->rounds; r++)
		sum += phase < STEP_TIME_PHASES ? a->paces[side][r].phase[phase] : a->paces[side][r].seconds;
	return sum / (double)a->rounds;
}

static void print_compare_row(const struct bench_comparison *a, const char *name, int phase,
			      const struct run_change_part *p)
{
	double x = side_mean(a, 0, phase), y = side_mean(a, 1, phase);

	if (x == 0 && y == 0)
		return;
	printf("  %-14s %12.5g %12.5g %+12.4g", name, 1e3 * x, 1e3 * y, 1e3 * p->seconds);
	if (isnan(p->low))
		printf("\n");
	else
		printf("   (%+.3g to %+.3g)\n", 1e3 * p->low, 1e3 * p->high);
}

static void print_compare_table(const struct bench_comparison *a, const struct run_change *c, const char *sentence)
{
	printf("%s\n", sentence);
	printf("  %-14s %12s %12s %12s\n", "ms a sample", SIDE_A, "with", "difference");
	for (int k = 0; k < STEP_TIME_PHASES; k++)
		print_compare_row(a, step_time_phase_name((enum step_time_phase)k), k, &c->phase[k]);
	print_compare_row(a, "all", STEP_TIME_PHASES, &c->whole);
	printf("%lld rounds; left out as warm-up: %s\n", (long long)a->rounds, WARMUP_RULE);
}

static json_t *json_change_part(const struct run_change_part *p)
{
	json_t *o = json_object();

	json_object_set_new(o, "seconds", real_or_null(p->seconds));
	json_object_set_new(o, "low", real_or_null(p->low));
	json_object_set_new(o, "high", real_or_null(p->high));
	return o;
}

/* Prints the comparison as one JSON object. */
static void print_compare_json(const struct bench_comparison *a, const struct run_change *c, const char *sentence)
{
	json_t *o = json_object(), *phases = json_object(), *sides = json_array();

	for (int side = 0; side < 2; side++) {
		json_t *list = json_array();

		for (int64_t r = 0; r < a->rounds; r++)
			json_array_append_new(list, real_or_null(a->paces[side][r].seconds));
		json_array_append_new(sides, list);
	}
	for (int k = 0; k < STEP_TIME_PHASES; k++)
		json_object_set_new(phases, step_time_phase_name((enum step_time_phase)k),
				    json_change_part(&c->phase[k]));
	json_object_set_new(o, "compare_with", json_string(a->flags));
	json_object_set_new(o, "rounds", json_integer(a->rounds));
	json_object_set_new(o, "factor", real_or_null(c->factor));
	json_object_set_new(o, "low", real_or_null(c->low));
	json_object_set_new(o, "high", real_or_null(c->high));
	json_object_set_new(o, "difference", json_change_part(&c->whole));
	json_object_set_new(o, "phases", phases);
	json_object_set_new(o, "seconds", sides);
	json_object_set_new(o, "sentence", json_string(sentence));
	json_print(o, JSON_PRINT_PAGE);
}

static void report_comparison(const struct bench_comparison *a, const struct run_change *c)
{
	struct buf text;

	buf_init(&text, 65536);
	run_change_describe(&text, c, SIDE_A, a->flags);
	if (a->job->cfg->json)
		print_compare_json(a, c, text.data ? text.data : "");
	else
		print_compare_table(a, c, text.data ? text.data : "");
	buf_done(&text);
}

bool bench_compare_wanted(const struct run_config *cfg)
{
	return cfg->command == COMMAND_BENCH && cfg->compare_with && cfg->compare_with[strspn(cfg->compare_with, " ")];
}

static void compare_sides(const struct bench_comparison *a, struct run_change *ret)
{
	const struct run_change_side sides[2] = { { a->paces[0], (size_t)a->rounds },
						  { a->paces[1], (size_t)a->rounds } };
	const struct run_change_pool none = { .df = 0 };

	run_change_compute(sides[0], sides[1], &none, ret);
}

/* Returns the exit code; 0: all rounds were measured. */
static int measure_sides(struct bench_comparison *a, struct err *err)
{
	int code = 0, rc = split_shell_words(a, err);

	if (!rc)
		rc = check_second_side(a, err);
	if (!rc)
		rc = run_rounds(a, &code, err);
	return rc ? rc : code;
}

static void free_comparison(struct bench_comparison *a)
{
	free(a->paces[0]);
	free(a->paces[1]);
	free(a->words);
	free(a->text);
}

int bench_compare_main(const struct job *job, struct err *err)
{
	static const char *const none[] = { "--compare-with= ", NULL }; /* the last one wins; blank means none */
	struct bench_comparison a = {
		.job = job, .flags = job->cfg->compare_with, .both = none, .rounds = job->cfg->rounds
	};
	struct run_change c;
	int code = measure_sides(&a, err);

	if (!code) {
		compare_sides(&a, &c);
		report_comparison(&a, &c);
	}
	free_comparison(&a);
	return code;
}

int bench_compare_try(const struct job *job, const char *flags, struct run_change *ret, struct err *err)
{
	static const char *const brief[] = { "--no-try", "--seconds", TRY_SECONDS, NULL };
	struct bench_comparison a = { .job = job, .flags = flags, .both = brief, .rounds = TRY_ROUNDS };
	int code = measure_sides(&a, err);

	if (!code)
		compare_sides(&a, ret);
	free_comparison(&a);
	return code;
}

/* ---- links ---- */

#define LINKS_MAX 64
#define FLAG_BYTES 80 /* room for "--link=…" */

struct link_row {
	double latency_s, bytes_per_s;
	double seconds, samples_per_s, exposed_s; /* per step */
};

struct link_list {
	const struct job *job;
	char flag[LINKS_MAX][FLAG_BYTES];
	struct link_row rows[LINKS_MAX];
	size_t n;
};

static const char *link_name(const struct link_list *l, size_t i)
{
	return strchr(l->flag[i], '=') + 1;
}

bool bench_links_wanted(const struct run_config *cfg)
{
	return cfg->command == COMMAND_BENCH && cfg->link && strchr(cfg->link, ';');
}

/* Ignores blanks around a link and an empty link after the last ;. */
static int split_links(struct link_list *l, struct err *err)
{
	for (const char *at = l->job->cfg->link; *at;) {
		size_t n;

		at += strspn(at, "; ");
		n = strcspn(at, "; ");
		if (!n)
			break;
		if (l->n == LINKS_MAX || n >= FLAG_BYTES - sizeof("--link="))
			return err_set(err, ERR_USAGE, "--link: at most %d links of %d letters each", LINKS_MAX,
				       FLAG_BYTES - (int)sizeof("--link="));
		snprintf(l->flag[l->n++], FLAG_BYTES, "--link=%.*s", (int)n, at);
		at += n;
	}
	return l->n ? 0 : err_set(err, ERR_USAGE, "--link: name links, as in \"0us,1GB/s;0us,0.1GB/s\"");
}

/* Builds the command line for one link: the last --link wins. The caller frees *ret. */
static int link_command_line(struct link_list *l, size_t i, char ***ret)
{
	static char json[] = "--json";
	char **argv = mem_array((size_t)l->job->argc + 3, sizeof(*argv));
	int n = 0;

	for (int k = 0; k < l->job->argc; k++)
		argv[n++] = l->job->argv[k];
	argv[n++] = l->flag[i];
	argv[n++] = json;
	*ret = argv;
	return n;
}

/* Parses a link; all are parsed before the first is measured. */
static int check_link_flag(struct link_list *l, size_t i, struct err *err)
{
	struct run_config *cfg = NULL;
	struct link_row *r = &l->rows[i];
	char **argv;
	const int argc = link_command_line(l, i, &argv);
	int rc = config_parse(&cfg, argc, argv, err);

	if (!rc)
		rc = config_link(cfg, &r->latency_s, &r->bytes_per_s, err);
	config_free(cfg);
	free(argv);
	return rc;
}

static int read_link_steps(struct link_list *l, size_t i, const struct buf *out, struct err *err)
{
	json_t *root = json_loadb(out->data ? out->data : "", out->len, 0, NULL);
	json_t *seconds = json_object_get(root, "step_seconds"), *phases = json_object_get(root, "phases");
	struct link_row *r = &l->rows[i];

	r->seconds = json_number_value(seconds);
	r->samples_per_s = json_number_value(json_object_get(root, "samples_per_s"));
	r->exposed_s = json_number_value(json_object_get(phases, "comm_exposed"));
	if (r->seconds > 0)
		log_info("link %zu of %zu, %s: %.5g ms a step", i + 1, l->n, link_name(l, i), 1e3 * r->seconds);
	json_decref(root);
	return r->seconds > 0 ? 0 : err_set(err, ERR_CORRUPT, "dptrain printed no steps");
}

static int measure_link(struct link_list *l, size_t i, int *ret_code, struct err *err)
{
	struct buf out;
	char **argv;
	int rc;

	link_command_line(l, i, &argv);
	buf_init(&out, OUTPUT_MAX);
	rc = child_run(argv, &out, ret_code, err);
	if (!rc && !*ret_code)
		rc = read_link_steps(l, i, &out, err);
	buf_done(&out);
	free(argv);
	return rc;
}

static void print_link_rows(const struct link_list *l)
{
	printf("%-24s %12s %12s %12s %10s\n", "link", "ms a step", "waited ms", "samples/s", "of first");
	for (size_t i = 0; i < l->n; i++) {
		const struct link_row *r = &l->rows[i];

		printf("%-24s %12.5g %12.5g %12.5g %9.2fx\n", link_name(l, i), 1e3 * r->seconds, 1e3 * r->exposed_s,
		       r->samples_per_s, r->samples_per_s / l->rows[0].samples_per_s);
	}
	printf("waited: for communication that nothing hides (phase/comm_exposed)\n");
}

static void print_links_json(const struct link_list *l)
{
	json_t *o = json_object(), *list = json_array();

	for (size_t i = 0; i < l->n; i++) {
		const struct link_row *r = &l->rows[i];
		json_t *j = json_object();

		json_object_set_new(j, "link", json_string(link_name(l, i)));
		json_object_set_new(j, "latency_s", real_or_null(r->latency_s));
		json_object_set_new(j, "bytes_per_s", real_or_null(r->bytes_per_s));
		json_object_set_new(j, "step_seconds", real_or_null(r->seconds));
		json_object_set_new(j, "comm_exposed", real_or_null(r->exposed_s));
		json_object_set_new(j, "samples_per_s", real_or_null(r->samples_per_s));
		json_array_append_new(list, j);
	}
	json_object_set_new(o, "links", list);
	json_print(o, JSON_PRINT_PAGE);
}

int bench_links_main(const struct job *job, struct err *err)
{
	struct link_list *l = mem_zalloc(sizeof(*l));
	int code = 0, rc;

	l->job = job;
	rc = split_links(l, err);
	for (size_t i = 0; !rc && i < l->n; i++)
		rc = check_link_flag(l, i, err);
	for (size_t i = 0; !rc && !code && i < l->n; i++)
		rc = measure_link(l, i, &code, err);
	if (!rc && !code && job->cfg->json)
		print_links_json(l);
	else if (!rc && !code)
		print_link_rows(l);
	free(l);
	return rc ? rc : code;
}
