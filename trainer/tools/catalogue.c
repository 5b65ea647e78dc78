/* SPDX-License-Identifier: Apache-2.0 */
/* catalogue.c: `dptrain plan --auto --catalogue`: every shipped machine with its best plan of each strategy, ranked by
 * the time, the money and the energy of a training. Memory is by formula; the model's graphs are planned once for all
 * machines. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracker/base/json_print.h"
#include "tracker/mem/mem.h"
#include "trainer/state/initial.h"
#include "trainer/tools/child.h"
#include "trainer/tools/costing.h"
#include "trainer/tools/subcommands.h"

/* ---- prices ----
 * What a machine costs an hour, from a file that the user edits (schema/hardware/prices.schema.json). */

struct prices {
	json_t *root;
};

static const char shipped_prices[] =
#define SHIPPED(name, text) text
#include "trainer/advise/prices.def"
#undef SHIPPED
	;

/* Writes the path of this user's file; returns false if it does not exist. */
static bool find_prices_file(char *ret, size_t n)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	int used = -1;

	if (config && *config)
		used = snprintf(ret, n, "%s/dptrain/prices.json", config);
	else if (home && *home)
		used = snprintf(ret, n, "%s/.config/dptrain/prices.json", home);
	return used > 0 && (size_t)used < n && access(ret, F_OK) == 0;
}

static int check_prices(json_t *root, const char *path, struct err *err)
{
	const char *name;
	json_t *v;

	json_object_foreach(root, name, v)
		if (strcmp(name, "currency") && strcmp(name, "per_hour"))
			return err_set(err, ERR_USAGE, "%.200s: unknown member '%.80s': expected currency, per_hour",
				       path, name);
	if (!json_is_string(json_object_get(root, "currency")))
		return err_set(err, ERR_USAGE, "%.200s: currency: expected a string", path);
	if (!json_is_object(json_object_get(root, "per_hour")))
		return err_set(err, ERR_USAGE, "%.200s: per_hour: expected an object of machines and prices", path);
	json_object_foreach(json_object_get(root, "per_hour"), name, v)
		if (!json_is_number(v) || json_number_value(v) < 0)
			return err_set(err, ERR_USAGE, "%.200s: per_hour.%.80s: expected a number of at least 0", path,
				       name);
	return 0;
}

/* NULL is fine. */
static void prices_free(struct prices *p)
{
	if (p)
		json_decref(p->root);
	free(p);
}

/* Reads a file of prices. path NULL: $XDG_CONFIG_HOME/dptrain/prices.json (or ~/.config/...) if it exists, else the
 * shipped one. ERR_USAGE names file and member. The caller frees *ret with prices_free. */
static int prices_open(struct prices **ret, const char *path, struct err *err)
{
	char own[4096];
	struct prices *p = mem_zalloc(sizeof(*p));
	json_error_t e = { .line = 0 };
	int rc = 0;

	path = path ? path : find_prices_file(own, sizeof(own)) ? own : NULL;
	p->root = path ? json_load_file(path, 0, &e) : json_loads(shipped_prices, 0, &e);
	if (!json_is_object(p->root))
		rc = err_set(err, ERR_USAGE, "%.200s:%d: %s", path ? path : "prices.json", e.line,
			     p->root ? "expected an object" : e.text);
	else
		rc = check_prices(p->root, path ? path : "prices.json", err);
	if (rc)
		prices_free(p);
	else
		*ret = p;
	return rc;
}

static const char *prices_currency(const struct prices *p)
{
	return json_string_value(json_object_get(p->root, "currency"));
}

/* Returns the price of an hour of the machine with that name; negative: no price is known. */
static double prices_per_hour(const struct prices *p, const char *machine)
{
	const json_t *v = json_object_get(json_object_get(p->root, "per_hour"), machine);

	return v ? json_number_value(v) : -1;
}

#define DEVICES 8 /* devices whose batches make the default global batch */

enum catalogue_order { BY_TIME, BY_MONEY, BY_ENERGY, CATALOGUE_ORDERS };

struct catalogue_row {
	char machine[HARDWARE_TEXT], unverified[256];
	struct search_plan plan;
	double cost[CATALOGUE_ORDERS]; /* hours, money, kWh; negative: not known */
	int rank[CATALOGUE_ORDERS];    /* from 1; 0: not ranked */
};

struct catalogue {
	const struct run_config *cfg;
	struct workload workload;
	struct costing *costing;
	struct prices *prices;
	double samples; /* samples of the whole training */
	int64_t global_batch;
	struct catalogue_row *rows;
	int n, room;
	int machines, without; /* machines on which nothing fits */
};

/* Computes the samples of the training from --tokens, or --epochs and the data set. */
static int count_samples(struct catalogue *c, struct err *err)
{
	const struct run_config *cfg = c->cfg;
	const bool words = workload_reads_words(&c->workload);

	if (config_given(cfg, FLAG_tokens) && !words)
		return err_set(err, ERR_USAGE, "--tokens: %s reads images: use --epochs N with --data-path",
			       cfg->model);
	if (config_given(cfg, FLAG_tokens))
		c->samples = ceil((double)cfg->tokens / (double)c->workload.config.seq_len);
	else if (c->workload.data->endless)
		return err_set(err, ERR_USAGE, "--catalogue: random inputs have no epochs: use %s",
			       words ? "--tokens N, or --data-path" : "--data-path");
	else
		c->samples = (double)cfg->epochs * (double)c->workload.data->n_samples[SPLIT_TRAIN];
	return 0;
}

static bool has_product(const struct hardware *h, const char *dtype)
{
	for (int i = 0; i < h->n_nodes; i++)
		if (!strcmp(h->nodes[i].op, "product") && !strcmp(h->nodes[i].dtype, dtype))
			return true;
	return false;
}

/* Returns the precision of a machine: the one that flags give, else bf16, fp16 or fp32, the first that it computes. */
static int machine_precision(const struct run_config *cfg, const struct hardware *h)
{
	if (config_given(cfg, FLAG_precision) || config_given(cfg, FLAG_opt_level))
		return cfg->precision;
	return has_product(h, "bf16") ? CONFIG_PRECISION_BF16 : has_product(h, "f16") ? CONFIG_PRECISION_FP16 :
		CONFIG_PRECISION_FP32;
}

/* Adds the row of the machine's best plan of a strategy. */
static void add_catalogue_row(struct catalogue *c, const struct hardware *h, const struct search_plan *p)
{
	const double hours = c->samples / p->samples_per_s / 3600, price = prices_per_hour(c->prices, h->name);
	struct catalogue_row r = { .plan = *p };

	snprintf(r.machine, sizeof(r.machine), "%s", h->name);
	snprintf(r.unverified, sizeof(r.unverified), "%s", h->unverified);
	r.cost[BY_TIME] = hours;
	r.cost[BY_MONEY] = price < 0 ? -1 : hours * price;
	r.cost[BY_ENERGY] = h->watts > 0 ? hours * h->watts * (h->shared ? 1 : p->layout.ranks) / 1000 : -1;
	mem_push(&c->rows, &c->n, &c->room, r);
}

static void add_best_plans(struct catalogue *c, const struct hardware *h, const struct plan_search *s)
{
	const int before = c->n;

	for (int id = 0; id < ADVISE_COUNT; id++)
		for (int i = 0; i < s->n; i++)
			if ((int)s->plans[i].strategy == id && s->plans[i].fits) {
				add_catalogue_row(c, h, &s->plans[i]);
				break;
			}
	c->machines++;
	c->without += c->n == before;
}

/* Adds the fastest fitting plan of each strategy on one machine. */
static int search_machine(struct catalogue *c, const struct hardware *h, struct err *err)
{
	const struct run_config *cfg = c->cfg;
	const int precision = machine_precision(cfg, h);
	const struct search_opts o = { .hardware = h,
				       .nodes = 1,
				       .ranks_per_node = h->ranks_per_node,
				       .global_batch = c->global_batch,
				       .precisions = &precision,
				       .n_precisions = 1,
				       .data_bytes = (double)c->workload.data->buffer_bytes,
				       .bucket_bytes = cfg->bucket_cap_mb * 1048576,
				       .threads = h->threads_per_rank,
				       .wanted = ~(1u << ADVISE_dp),
				       .built = ~0u,
				       .model = costing_model,
				       .user = c->costing };
	struct plan_search s;
	int rc;

	costing_set_machine(c->costing, h);
	rc = search_all(&s, &o, SEARCH_SPEED, err);
	if (rc)
		return rc;
	add_best_plans(c, h, &s);
	search_done(&s);
	return 0;
}

static int search_machines(struct catalogue *c, struct err *err)
{
	int rc = 0;

	for (int i = 0; !rc && hardware_shipped(i); i++) {
		struct hardware h;

		rc = hardware_open_rated(&h, hardware_shipped(i), err);
		if (rc)
			break;
		if (!c->costing)
			c->costing = costing_new(c->cfg, &c->workload, &h);
		rc = search_machine(c, &h, err);
		hardware_done(&h);
	}
	return rc;
}

/* ---- ranks ---- */

static int rows_by_time(const void *x, const void *y)
{
	const struct catalogue_row *a = x, *b = y;

	return (a->cost[BY_TIME] > b->cost[BY_TIME]) - (a->cost[BY_TIME] < b->cost[BY_TIME]);
}

static void rank_rows(struct catalogue *c)
{
	if (c->n)
		qsort(c->rows, (size_t)c->n, sizeof(*c->rows), rows_by_time);
	for (int o = 0; o < CATALOGUE_ORDERS; o++)
		for (int i = 0; i < c->n; i++) {
			const double cost = c->rows[i].cost[o];

			c->rows[i].rank[o] = cost >= 0;
			for (int k = 0; cost >= 0 && k < c->n; k++)
				c->rows[i].rank[o] += c->rows[k].cost[o] >= 0 && (c->rows[k].cost[o] < cost ||
					(k < i && c->rows[k].cost[o] <= cost));
		}
}

/* ---- output ---- */

static json_t *cost_or_null(double v)
{
	return v < 0 ? json_null() : real_or_null(v);
}

static json_t *rank_or_null(int rank)
{
	return rank ? json_integer(rank) : json_null();
}

static json_t *json_catalogue_row(const struct catalogue_row *r)
{
	json_t *o = json_object();

	json_object_set_new(o, "machine", json_string(r->machine));
	json_object_set_new(o, "strategy", json_string(advise_table[r->plan.strategy]->name));
	json_object_set_new(o, "zero_stage", json_integer(r->plan.layout.zero_stage));
	json_object_set_new(o, "pp_stages", json_integer(r->plan.layout.stages));
	json_object_set_new(o, "ranks", json_integer(r->plan.layout.ranks));
	json_object_set_new(o, "samples_per_s", real_or_null(r->plan.samples_per_s));
	json_object_set_new(o, "peak_bytes", json_integer((json_int_t)r->plan.peak_bytes));
	json_object_set_new(o, "hours", cost_or_null(r->cost[BY_TIME]));
	json_object_set_new(o, "money", cost_or_null(r->cost[BY_MONEY]));
	json_object_set_new(o, "kwh", cost_or_null(r->cost[BY_ENERGY]));
	json_object_set_new(o, "by_time", rank_or_null(r->rank[BY_TIME]));
	json_object_set_new(o, "by_money", rank_or_null(r->rank[BY_MONEY]));
	json_object_set_new(o, "by_energy", rank_or_null(r->rank[BY_ENERGY]));
	json_object_set_new(o, "unverified", json_string(r->unverified));
	return o;
}

static void add_catalogue_json(const struct catalogue *c, struct buf *out)
{
	json_t *root = json_object(), *list = json_array();

	for (int i = 0; i < c->n; i++)
		json_array_append_new(list, json_catalogue_row(&c->rows[i]));
	json_object_set_new(root, "samples", real_or_null(c->samples));
	json_object_set_new(root, "global_batch_size", json_integer(c->global_batch));
	json_object_set_new(root, "currency", json_string(prices_currency(c->prices)));
	json_object_set_new(root, "rows", list);
	json_append(root, JSON_INDENT(1) | JSON_REAL_PRECISION(8), out);
}

/* Adds a cost and its rank, "-" if it is not known. */
static void add_ranked_cost(const struct catalogue_row *r, enum catalogue_order o, struct buf *out)
{
	if (r->rank[o])
		buf_addf(out, " %10.4g %4d", r->cost[o], r->rank[o]);
	else
		buf_addf(out, " %10s %4s", "-", "-");
}

static void add_catalogue_text(const struct catalogue *c, struct buf *out)
{
	const char *currency = prices_currency(c->prices);

	buf_addf(out, "%s, %.6g samples, global batch %lld, one machine each; by formula, the fastest first\n",
		 c->cfg->model, c->samples, (long long)c->global_batch);
	buf_addf(out, "%-14s %-8s %5s %11s %10s %4s %10s %4s %10s %4s\n", "", "", "ranks", "samples/s", "hours", "rank",
		 *currency ? currency : "money", "rank", "kWh", "rank");
	for (int i = 0; i < c->n; i++) {
		const struct catalogue_row *r = &c->rows[i];

		buf_addf(out, "%-14s %-8s %5d %11.4g", r->machine, advise_table[r->plan.strategy]->name,
			 r->plan.layout.ranks, r->plan.samples_per_s);
		for (int o = 0; o < CATALOGUE_ORDERS; o++)
			add_ranked_cost(r, (enum catalogue_order)o, out);
		buf_addc(out, '\n');
	}
	buf_addf(out, "energy: of the devices at full load. nothing fits on %d of %d machines\n", c->without,
		 c->machines);
	if (!c->n || !c->rows[0].rank[BY_MONEY])
		buf_adds(out, "no ranking by money where no price is known: edit prices.json, or use --prices FILE\n");
}

static void add_unverified(const struct catalogue *c, struct buf *out)
{
	buf_adds(out, "unverified, without a document:\n");
	for (int i = 0; i < c->n; i++) {
		bool seen = false;

		for (int k = 0; k < i; k++)
			seen |= !strcmp(c->rows[k].machine, c->rows[i].machine);
		if (!seen && *c->rows[i].unverified)
			buf_addf(out, "  %s: %s\n", c->rows[i].machine, c->rows[i].unverified);
	}
}

static int fill_catalogue(struct catalogue *c, const struct job *job, struct err *err)
{
	struct run_config *cfg = job->cfg;
	int rc = workload_open(&c->workload, cfg, job->batch, NULL, err);

	if (!rc)
		workload_warn(c->workload.data);
	if (!rc)
		rc = initial_given(&c->workload, cfg, err);
	if (!rc)
		rc = count_samples(c, err);
	if (!rc)
		rc = prices_open(&c->prices, cfg->prices, err);
	c->global_batch = config_given(cfg, FLAG_global_batch_size) ? cfg->global_batch_size
								    : DEVICES * cfg->batch_size * cfg->grad_accum_steps;
	if (!rc)
		rc = search_machines(c, err);
	rank_rows(c);
	return rc;
}

int catalogue_plan(const struct job *job, struct buf *out, struct err *err)
{
	struct catalogue c = { .cfg = job->cfg };
	int rc = fill_catalogue(&c, job, err);

	if (!rc && job->cfg->json) {
		add_catalogue_json(&c, out);
	} else if (!rc) {
		add_catalogue_text(&c, out);
		add_unverified(&c, out);
	}
	costing_free(c.costing);
	prices_free(c.prices);
	workload_close(&c.workload);
	free(c.rows);
	return rc || c.n ? rc : NO_PLAN_FITS;
}
