/* SPDX-License-Identifier: Apache-2.0 */
/* hardware.c: reads a machine's file, or one that is shipped, and interpolates seconds between the measured sizes. */
#include "trainer/advise/hardware.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracker/mem/mem.h"

#define PRODUCT "product" /* op of a square product in the table of nodes */
#define NEAREST 4	  /* timed nodes that are averaged */
#define EXACT 1e-6	  /* distance below which it is the same node */

/* Interpolates between two points in logs of both axes; constant beyond the ends. */
static double interpolate_log_log(double x, double x0, double y0, double x1, double y1)
{
	const double share = x1 > x0 ? fmin(1, fmax(0, log(x / x0) / log(x1 / x0))) : 0;

	return exp(log(y0) * (1 - share) + log(y1) * share);
}

static double bandwidth_at(const struct hardware *h, double bytes)
{
	const struct hardware_bandwidth *b = h->bandwidth;

	for (int i = 1; i < h->n_bandwidth; i++)
		if (bytes < b[i].bytes || i == h->n_bandwidth - 1)
			return interpolate_log_log(bytes, b[i - 1].bytes, b[i - 1].rate, b[i].bytes, b[i].rate);
	return b[0].rate;
}

/* Returns the FLOP/s of a product with that many operations. The table is sorted by size. 0: no product of that type
 * was timed. */
static double product_rate(const struct hardware *h, const char *dtype, double flops)
{
	const struct hardware_node *before = NULL;

	for (int i = 0; i < h->n_nodes; i++) {
		const struct hardware_node *n = &h->nodes[i];

		if (strcmp(n->op, PRODUCT) || strcmp(n->dtype, dtype))
			continue;
		if (flops <= n->flops)
			return before ? interpolate_log_log(flops, before->flops, before->flops / before->seconds,
							    n->flops, n->flops / n->seconds)
				      : n->flops / n->seconds;
		before = n;
	}
	return before ? before->flops / before->seconds : 0;
}

/* Returns the lower bound of a node's seconds by the roofline model: the slower of its operations and its bytes. */
static double roofline_seconds(const struct hardware *h, const char *dtype, double flops, double bytes)
{
	const double rate = flops > 0 ? product_rate(h, dtype, flops) : 0;

	return fmax(bytes / bandwidth_at(h, fmax(bytes, 1)), rate > 0 ? flops / rate : 0);
}

static double node_distance(const struct hardware_node *n, double flops, double bytes)
{
	const double by_flops = n->flops > 0 && flops > 0 ? log(flops / n->flops) : 0;
	const double by_bytes = log(fmax(bytes, 1) / fmax(n->bytes, 1));

	return hypot(by_flops, by_bytes);
}

struct near_node {
	double distance, ratio; /* ratio: log of its seconds divided by those of the roofline */
};

/* Inserts one into the list of the NEAREST nearest nodes, sorted by distance. */
static void keep_nearest_nodes(struct near_node *near, int *n, struct near_node one)
{
	int at = *n;

	while (at > 0 && near[at - 1].distance > one.distance)
		at--;
	if (at == NEAREST)
		return;
	*n = *n < NEAREST ? *n + 1 : NEAREST;
	memmove(near + at + 1, near + at, (size_t)(*n - at - 1) * sizeof(*near));
	near[at] = one;
}

double hardware_node_s(const struct hardware *h, const char *op, const char *dtype, double flops, double bytes)
{
	const double own_s = roofline_seconds(h, dtype, flops, bytes);
	struct near_node near[NEAREST + 1];
	double sum = 0, weights = 0;
	int n = 0;

	for (int i = 0; i < h->n_nodes; i++) {
		const struct hardware_node *t = &h->nodes[i];

		if (strcmp(t->op, op) || strcmp(t->dtype, dtype))
			continue;
		keep_nearest_nodes(near, &n, (struct near_node){ node_distance(t, flops, bytes),
						   log(t->seconds / roofline_seconds(h, dtype, t->flops, t->bytes)) });
	}
	if (!n || own_s <= 0)
		return own_s;
	if (near[0].distance < EXACT)
		return own_s * exp(near[0].ratio);
	for (int i = 0; i < n; i++) {
		const double weight = 1 / (near[i].distance * near[i].distance);

		sum += weight * near[i].ratio;
		weights += weight;
	}
	return own_s * exp(sum / weights);
}

/* Returns the seconds by the curve that was measured for this op and number of ranks; negative: there is none. */
static double measured_collective_seconds(const struct hardware *h, const char *op, double bytes, int ranks,
					  bool between)
{
	const struct hardware_collective *before = NULL, *last = NULL;

	for (int i = 0; i < h->n_collectives; i++) {
		const struct hardware_collective *c = &h->collectives[i];

		if (strcmp(c->op, op) || c->ranks != ranks || c->between != between)
			continue;
		if (last && bytes <= c->bytes)
			return interpolate_log_log(bytes, last->bytes, last->seconds, c->bytes, c->seconds);
		before = last;
		last = c;
	}
	if (!last)
		return -1;
	if (!before)
		return last->seconds * fmax(1, bytes / last->bytes);
	return last->seconds +
	       (bytes - last->bytes) * fmax(0, (last->seconds - before->seconds) / (last->bytes - before->bytes));
}

double hardware_collective_s(const struct hardware *h, const char *op, double bytes, int ranks, int nodes)
{
	const struct hardware_link *link = nodes > 1 ? &h->between : &h->within;
	const bool sum = !strcmp(op, "allreduce"), peer = !strcmp(op, "send");
	const double hops = (sum ? 2 : 1) * (peer ? 1 : (nodes > 1 ? nodes : ranks) - 1);
	double s;

	if (ranks < 2 || bytes <= 0)
		return 0;
	s = measured_collective_seconds(h, op, bytes, ranks, nodes > 1);
	if (s >= 0)
		return s;
	return hops * link->latency_s + (peer ? bytes : (sum ? 2 : 1) * bytes * (ranks - 1) / ranks) / link->rate;
}

void hardware_done(struct hardware *h)
{
	free(h->nodes);
	free(h->device);
	h->nodes = NULL;
	h->device = NULL;
	h->n_nodes = 0;
}

/* ---- files ---- */

static const struct {
	const char *name, *text;
} shipped[] = {
#define SHIPPED(name, text) { name, text },
#include "trainer/advise/shipped.def"
#undef SHIPPED
};

struct hardware_reader {
	struct hardware *h;
	const char *path;  /* for messages */
	const char *where; /* the member that is read, for messages; "": the root */
	struct err *err;
	int rc;
};

/* Reads a number of at least `least`; `otherwise` if it is absent (NaN: it is required). */
static double read_hardware_number(struct hardware_reader *r, json_t *o, const char *name, double least,
				   double otherwise)
{
	json_t *v = json_object_get(o, name);

	if (r->rc || (!v && !isnan(otherwise)))
		return otherwise;
	if (!json_is_number(v) || json_number_value(v) < least) {
		r->rc = err_set(r->err, ERR_USAGE, "%.200s: %s%s%s: expected a number of at least %g", r->path,
				r->where, *r->where ? "." : "", name, least);
		return otherwise;
	}
	return json_number_value(v);
}

static void read_hardware_text(struct hardware_reader *r, json_t *o, const char *name, char *ret, size_t n)
{
	const char *v = json_string_value(json_object_get(o, name));

	if (r->rc)
		return;
	if (!v || strlen(v) >= n)
		r->rc = err_set(r->err, ERR_USAGE, "%.200s: %s%s%s: expected a string of less than %zu bytes", r->path,
				r->where, *r->where ? "." : "", name, n);
	else
		snprintf(ret, n, "%s", v);
}

static void read_link(struct hardware_reader *r, json_t *root, const char *name, struct hardware_link *ret)
{
	json_t *o = json_object_get(root, name);

	if (!o)
		return;
	r->where = name;
	ret->latency_s = read_hardware_number(r, o, "latency_s", 0, NAN);
	ret->rate = 1e9 * read_hardware_number(r, o, "gbs", 1e-9, NAN);
	ret->rings = read_hardware_number(r, o, "rings", 1, 1);
}

/* read_hardware_root has allocated the nodes. */
static void read_nodes(struct hardware_reader *r, json_t *root)
{
	struct hardware *h = r->h;
	json_t *o;
	size_t i;

	r->where = "nodes";
	json_array_foreach(json_object_get(root, "nodes"), i, o) {
		struct hardware_node *n = &h->nodes[h->n_nodes];

		read_hardware_text(r, o, "op", n->op, sizeof(n->op));
		read_hardware_text(r, o, "dtype", n->dtype, sizeof(n->dtype));
		n->flops = read_hardware_number(r, o, "flops", 0, 0);
		n->bytes = read_hardware_number(r, o, "bytes", 1, NAN);
		n->seconds = read_hardware_number(r, o, "seconds", 1e-12, NAN);
		h->n_nodes++;
	}
}

static void read_products(struct hardware_reader *r, json_t *root)
{
	struct hardware *h = r->h;
	json_t *o;
	size_t i;

	r->where = "products";
	json_array_foreach(json_object_get(root, "products"), i, o) {
		struct hardware_node *n = &h->nodes[h->n_nodes];
		const double size = read_hardware_number(r, o, "size", 1, NAN);

		read_hardware_text(r, o, "dtype", n->dtype, sizeof(n->dtype));
		snprintf(n->op, sizeof(n->op), "product");
		n->flops = 2 * size * size * size;
		n->bytes = 12 * size * size;
		n->seconds = 1e-9 * n->flops / read_hardware_number(r, o, "gflops", 1e-9, NAN);
		h->n_nodes++;
	}
}

static void read_bandwidth(struct hardware_reader *r, json_t *root)
{
	struct hardware *h = r->h;
	json_t *o, *list = json_object_get(root, "bandwidth");
	size_t i;

	if (!r->rc && list && (!json_array_size(list) || json_array_size(list) > HARDWARE_POINTS))
		r->rc = err_set(r->err, ERR_USAGE, "%.200s: bandwidth: expected a list of 1 to %d points", r->path,
				HARDWARE_POINTS);
	if (r->rc)
		return;
	r->where = "bandwidth";
	json_array_foreach(list, i, o)
		h->bandwidth[h->n_bandwidth++] = (struct hardware_bandwidth){
			.bytes = read_hardware_number(r, o, "bytes", 1, NAN),
			.rate = 1e9 * read_hardware_number(r, o, "gbs", 1e-9, NAN),
		};
}

static void read_collectives(struct hardware_reader *r, json_t *root)
{
	struct hardware *h = r->h;
	json_t *o, *list = json_object_get(root, "collectives");
	size_t i;

	if (!r->rc && json_array_size(list) > HARDWARE_POINTS)
		r->rc = err_set(r->err, ERR_USAGE, "%.200s: collectives: more than %d points", r->path,
				HARDWARE_POINTS);
	r->where = "collectives";
	json_array_foreach(r->rc ? NULL : list, i, o) {
		struct hardware_collective *c = &h->collectives[h->n_collectives++];
		char transport[HARDWARE_TEXT] = "";

		read_hardware_text(r, o, "op", c->op, sizeof(c->op));
		read_hardware_text(r, o, "transport", transport, sizeof(transport));
		c->bytes = read_hardware_number(r, o, "bytes", 1, NAN);
		c->seconds = read_hardware_number(r, o, "seconds", 1e-12, NAN);
		c->ranks = (int)read_hardware_number(r, o, "ranks", 2, NAN);
		c->between = strcmp(transport, "shm") != 0 && strcmp(transport, "nccl") != 0;
	}
}

/* Refuses unknown members: a misspelt one would be read as absent. */
static void check_hardware_members(struct hardware_reader *r, json_t *root)
{
	static const char *const known[] = { "name",	"source",	"memory_bytes", "shared_memory",
					     "ranks_per_node", "host_memory_bytes", "host_gbs", "overlap",
					     "rings",	"spread",	"samples_per_s", "within",
					     "between", "products",	"bandwidth",	"nodes", "collectives",
					     "device",	"threads_per_rank", "alone", "process_bytes",
					     "watts",	"sources" };
	const char *key;
	json_t *v;

	json_object_foreach(root, key, v) {
		bool found = false;

		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			found |= !strcmp(known[i], key);
		if (!found && !r->rc)
			r->rc = err_set(r->err, ERR_USAGE, "%.200s: unknown member '%.80s'", r->path, key);
	}
}

static void read_scalars(struct hardware_reader *r, json_t *root)
{
	struct hardware *h = r->h;

	r->where = "";
	read_hardware_text(r, root, "name", h->name, sizeof(h->name));
	h->memory_bytes = read_hardware_number(r, root, "memory_bytes", 1, NAN);
	h->shared = json_is_true(json_object_get(root, "shared_memory"));
	h->ranks_per_node = (int)read_hardware_number(r, root, "ranks_per_node", 1, 1);
	h->alone = fmin(1, read_hardware_number(r, root, "alone", 1e-3, 1));
	h->threads_per_rank = (int)read_hardware_number(r, root, "threads_per_rank", 1, 0);
	h->process_bytes = read_hardware_number(r, root, "process_bytes", 0, 0);
	h->host_bytes = read_hardware_number(r, root, "host_memory_bytes", 0, 0);
	h->host_rate = 1e9 * read_hardware_number(r, root, "host_gbs", 0, 0);
	h->overlap = fmin(1, read_hardware_number(r, root, "overlap", 0, 1));
	h->rings = read_hardware_number(r, root, "rings", 1, 1);
	h->spread = read_hardware_number(r, root, "spread", 0, 0);
	h->samples_per_s = read_hardware_number(r, root, "samples_per_s", 0, 0);
	h->watts = read_hardware_number(r, root, "watts", 0, 0);
}

/* Lists the members whose source is "unverified". */
static void read_sources(struct hardware_reader *r, json_t *root)
{
	struct hardware *h = r->h;
	const char *member;
	size_t used = 0;
	json_t *o;

	r->where = "sources";
	json_object_foreach(json_object_get(root, "sources"), member, o) {
		const char *source = json_string_value(json_object_get(o, "source"));

		if (r->rc)
			return;
		if (!source)
			r->rc = err_set(r->err, ERR_USAGE, "%.200s: sources.%.60s.source: expected a document or "
					"\"unverified\"", r->path, member);
		else if (!strcmp(source, "unverified") && used < sizeof(h->unverified))
			used += (size_t)snprintf(h->unverified + used, sizeof(h->unverified) - used, "%s%s",
						 used ? "," : "", member);
	}
}

static void read_device(struct hardware_reader *r, json_t *root)
{
	json_t *o = json_object_get(root, "device");

	if (r->rc || !o)
		return;
	if (!json_is_object(o))
		r->rc = err_set(r->err, ERR_USAGE, "%.200s: device: expected an object", r->path);
	else
		r->h->device = json_dumps(o, JSON_COMPACT);
	if (!r->rc && !r->h->device)
		r->rc = err_set(r->err, ERR_NOMEM, "out of memory: %.200s", r->path);
}

static int read_hardware_root(struct hardware_reader *r, json_t *root)
{
	const size_t n =
		json_array_size(json_object_get(root, "nodes")) + json_array_size(json_object_get(root, "products"));

	if (n > HARDWARE_NODES)
		return err_set(r->err, ERR_USAGE, "%.200s: more than %d nodes and products", r->path, HARDWARE_NODES);
	r->h->nodes = mem_array(n + 1, sizeof(*r->h->nodes));
	check_hardware_members(r, root);
	read_scalars(r, root);
	read_link(r, root, "within", &r->h->within);
	read_link(r, root, "between", &r->h->between);
	read_products(r, root);
	read_nodes(r, root);
	read_bandwidth(r, root);
	read_device(r, root);
	read_sources(r, root);
	read_collectives(r, root);
	return r->rc;
}

const char *hardware_shipped(int i)
{
	return i >= 0 && i < (int)(sizeof(shipped) / sizeof(shipped[0])) ? shipped[i].name : NULL;
}

static json_t *load_hardware_json(const char *name, json_error_t *e)
{
	for (size_t i = 0; i < sizeof(shipped) / sizeof(shipped[0]); i++)
		if (!strcmp(shipped[i].name, name))
			return json_loads(shipped[i].text, 0, e);
	return json_load_file(name, 0, e);
}

/* Reports an unknown file and lists the shipped names. */
static int hardware_not_found(const char *name, struct err *err)
{
	char names[400] = "";
	size_t used = 0;

	for (size_t i = 0; i < sizeof(shipped) / sizeof(shipped[0]); i++)
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "", shipped[i].name);
	return err_set(err, ERR_USAGE, "--hardware '%.200s': no such file; shipped files are: %s", name, names);
}

int hardware_open(struct hardware *ret, const char *name, struct err *err)
{
	struct hardware h = { .n_nodes = 0 };
	struct hardware_reader r = { .h = &h, .path = name, .err = err };
	json_error_t e = { .line = 0 };
	json_t *root = load_hardware_json(name, &e);
	struct stat st;
	int rc;

	if (!root && e.line < 0 && stat(name, &st))
		return hardware_not_found(name, err);
	if (!json_is_object(root))
		rc = err_set(err, ERR_USAGE, "%.200s:%d: %s", name, e.line, root ? "expected an object" : e.text);
	else
		rc = read_hardware_root(&r, root);
	json_decref(root);
	if (rc)
		hardware_done(&h);
	else
		*ret = h;
	return rc;
}

int hardware_open_rated(struct hardware *ret, const char *name, struct err *err)
{
	int rc = hardware_open(ret, name, err);

	if (rc || ret->n_bandwidth)
		return rc;
	hardware_done(ret);
	return err_set(err, ERR_USAGE, "%.200s: bandwidth: expected a list of 1 to %d points", name, HARDWARE_POINTS);
}

int hardware_place(char *ret, size_t n, struct err *err)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	int used = -1;

	if (config && *config)
		used = snprintf(ret, n, "%s/dptrain/hardware.json", config);
	else if (home && *home)
		used = snprintf(ret, n, "%s/.config/dptrain/hardware.json", home);
	if (used < 0 || (size_t)used >= n)
		return err_set(err, ERR_USAGE, "hardware file: neither XDG_CONFIG_HOME nor HOME is set: use --hardware "
			       "FILE (--calibrate: --out FILE)");
	return 0;
}

int hardware_open_chosen(struct hardware *ret, const char *name, struct err *err)
{
	char path[4096];
	int rc;

	if (name)
		return hardware_open_rated(ret, name, err);
	rc = hardware_place(path, sizeof(path), err);
	if (rc)
		return rc;
	if (access(path, R_OK))
		return err_set(err, ERR_USAGE, "%.300s: does not exist: measure this machine once (dptrain bench "
			       "--calibrate --nproc-per-node N), or name one: --hardware a100-40gb-x8", path);
	return hardware_open_rated(ret, path, err);
}
