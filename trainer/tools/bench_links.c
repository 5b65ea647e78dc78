/* bench_links.c: runs each link in a new process, which prints its steps with --json. Knows no model and no engine. */
#include "trainer/tools/bench_links.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/log.h"
#include "trainer/tools/child.h"
#include "trainer/tools/real.h"

#define LINKS_MAX 64
#define FLAG_BYTES 80 /* of "--link=…" */
#define OUTPUT_MAX ((size_t)256 << 20)

struct link_row {
	double latency_s, bytes_per_s;
	double seconds, samples_per_s, exposed_s; /* of a step */
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
static int link_command_line(struct link_list *l, size_t i, char ***ret, struct err *err)
{
	static char json[] = "--json";
	char **argv = calloc((size_t)l->job->argc + 3, sizeof(*argv));
	int n = 0;

	if (!argv)
		return err_set(err, ERR_NOMEM, "out of memory: --link");
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
	char **argv = NULL;
	int rc = link_command_line(l, i, &argv, err);

	if (rc > 0)
		rc = config_parse(&cfg, rc, argv, err);
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
	char **argv = NULL;
	int rc = link_command_line(l, i, &argv, err);

	buf_init(&out, OUTPUT_MAX);
	if (rc > 0)
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
	json_dumpf(o, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
	putchar('\n');
	json_decref(o);
}

int bench_links_main(const struct job *job, struct err *err)
{
	struct link_list *l = calloc(1, sizeof(*l));
	int code = 0, rc;

	if (!l)
		return err_set(err, ERR_NOMEM, "out of memory: --link");
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
