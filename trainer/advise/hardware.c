/* hardware.c: interpolates seconds between the measured sizes. */
#include "trainer/advise/hardware.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
							    n->flops,
							    n->flops / n->seconds)
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
	return last->seconds + (bytes - last->bytes) * fmax(0, (last->seconds - before->seconds) /
							    (last->bytes - before->bytes));
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
