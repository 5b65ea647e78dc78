/* value.c: single values: labels for messages, parsing of bytes and ranges, and values set after the flags. */
#include <stdlib.h>
#include <strings.h>

#include "trainer/config/resolve_inside.h"

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
		if (!strcasecmp(end, units[i].unit) && v * units[i].factor >= 1 &&
		    v * units[i].factor <= BYTES_MAX) {
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
