/* link_spec.c: parses --link: "200us,1.25GB/s". */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "trainer/config/flags.h"

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
	static const struct link_unit rates[] = { { "kB/s", 1e3 },	{ "MB/s", 1e6 },       { "GB/s", 1e9 },
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
