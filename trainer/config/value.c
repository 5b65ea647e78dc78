/* SPDX-License-Identifier: Apache-2.0 */
/* value.c: single values: origins, labels for messages, parsing of bytes, ranges and links, values set after the flags,
 * and the cores of a rank. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tracker/system/cgroup.h"
#include "trainer/config/flags.h"

#define BYTES_MAX 1e15
#define NODES_MOST 65536

const char *config_label(const struct run_config *cfg, enum flag_id id, char *ret, size_t n)
{
	return flag_label(cfg, id, ret, n);
}

int config_bytes(const struct run_config *cfg, enum flag_id id, const char *text, uint64_t *ret, struct err *err)
{
	static const struct {
		const char *unit;
		double factor;
	} units[] = { { "", 1 },	 { "B", 1 },	     { "k", 1e3 },     { "kB", 1e3 },	{ "KiB", 1024 },
		      { "M", 1e6 },	 { "MB", 1e6 },	     { "MiB", 1 << 20 }, { "G", 1e9 },	{ "GB", 1e9 },
		      { "GiB", 1 << 30 },
		      { "T", 1e12 },	 { "TB", 1e12 },     { "TiB", (double)((uint64_t)1 << 40) } };
	char label[200], *end;
	double v = strtod(text, &end);

	for (size_t i = 0; end != text && i < sizeof(units) / sizeof(*units); i++)
		if (!strcasecmp(end, units[i].unit) && v * units[i].factor >= 1 && v * units[i].factor <= BYTES_MAX) {
			*ret = (uint64_t)(v * units[i].factor);
			return 0;
		}
	return err_set(err, ERR_USAGE, "%s '%.60s': expected a number of bytes, such as 256MiB or 1G",
		       config_label(cfg, id, label, sizeof(label)), text);
}

/* Parses "3:7", or "7" for "7:7": at least 1, the second not below the first. */
static bool parse_colon_range(const char *text, int64_t *ret_first, int64_t *ret_last)
{
	char *end;
	long long first = strtoll(text, &end, 10), last = first;
	bool good = end != text && first > 0;

	if (good && *end == ':') {
		const char *second = end + 1;

		last = strtoll(second, &end, 10);
		good = end != second && last >= first;
	}
	if (!good || *end)
		return false;
	*ret_first = first;
	*ret_last = last;
	return true;
}

bool config_trace_steps(const struct run_config *cfg, int64_t *ret_first, int64_t *ret_last)
{
	return parse_colon_range(cfg->trace_steps ? cfg->trace_steps : "", ret_first, ret_last);
}

bool config_nodes(const struct run_config *cfg, int *ret_min, int *ret_max)
{
	int64_t min, max;

	if (!parse_colon_range(cfg->nnodes ? cfg->nnodes : "1", &min, &max) || max > NODES_MOST)
		return false;
	*ret_min = (int)min;
	*ret_max = (int)max;
	return true;
}

int config_settle(struct run_config *cfg, enum flag_id id, int64_t value, const char *source, struct err *err)
{
	int64_t *at = (int64_t *)((char *)cfg + flag_get(id)->offset);
	struct label l;

	if (config_given(cfg, id) && *at != value)
		return err_set(err, ERR_USAGE, "%s %lld contradicts %.200s, which has %lld", label_flag(cfg, id, &l),
			       (long long)*at, source, (long long)value);
	if (config_given(cfg, id))
		return 0;
	*at = value;
	mark_derived(cfg, id);
	return 0;
}

int config_put(struct run_config *cfg, enum flag_id id, const char *label, const char *text, struct err *err)
{
	int rc = flag_store(cfg, id, label, text, err);

	if (!rc)
		mark_derived(cfg, id);
	return rc;
}

const char *config_origin_name(enum config_origin o)
{
	static const char *const names[] = { [ORIGIN_DEFAULT] = "default",
					     [ORIGIN_FILE] = "config file",
					     [ORIGIN_ENVIRONMENT] = "environment",
					     [ORIGIN_FLAG] = "flag",
					     [ORIGIN_DERIVED] = "derived" };

	return names[o];
}

bool config_given(const struct run_config *cfg, enum flag_id id)
{
	return cfg->origin[id] != ORIGIN_DEFAULT && cfg->origin[id] != ORIGIN_DERIVED;
}

#define LATENCY_MOST_S 60
#define RATE_MOST 1e15 /* bytes a second */

struct link_unit {
	const char *word;
	double factor;
};

/* Parses a number with a unit, n bytes at text; returns -1 if it is malformed. */
static double read_quantity(const char *text, size_t n, const struct link_unit *units)
{
	char *at;
	double v = strtod(text, &at);

	for (; at != text && units->word && v >= 0; units++)
		if (strlen(units->word) == n - (size_t)(at - text) &&
		    !strncasecmp(at, units->word, strlen(units->word)))
			return v * units->factor;
	return -1;
}

int config_link(const struct run_config *cfg, double *ret_latency_s, double *ret_bytes_per_s, struct err *err)
{
	static const struct link_unit times[] = { { "us", 1e-6 }, { "ms", 1e-3 }, { "s", 1 }, { NULL, 0 } };
	static const struct link_unit rates[] = { { "kB/s", 1e3 },     { "MB/s", 1e6 },	    { "GB/s", 1e9 },
						  { "Mbit/s", 125e3 }, { "Gbit/s", 125e6 }, { NULL, 0 } };
	const char *text = cfg->link ? cfg->link : "0us,0GB/s", *comma = strchr(text, ',');
	double latency = comma ? read_quantity(text, (size_t)(comma - text), times) : -1;
	double rate = comma ? read_quantity(comma + 1, strlen(comma + 1), rates) : -1;
	char label[200];

	if (!(latency >= 0 && latency <= LATENCY_MOST_S) || !(rate >= 0 && rate <= RATE_MOST))
		return err_set(err, ERR_USAGE,
			       "%s '%.60s': expected a latency (us, ms, s) and a rate (MB/s, GB/s, Mbit/s, Gbit/s), as "
			       "in 200us,1.25GB/s; 0us and 0GB/s mean no limit",
			       flag_label(cfg, FLAG_link, label, sizeof(label)), text);
	*ret_latency_s = latency;
	*ret_bytes_per_s = rate;
	return 0;
}

static int usable_cores(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
	int quota = cgroup_cores("");

	return quota < n ? quota : n;
}

int config_cores(const struct run_config *cfg)
{
	int n = usable_cores() / cfg->local_world;

	return n > 1 ? n : 1;
}
