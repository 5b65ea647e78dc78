/* groups.c: groups of runs and their statistics, see groups.h. Knows no series. */
#include "web/api/native/groups/groups.h"

#include <math.h>
#include <string.h>

#include "web/store/base/map.h"

static const char *find_kv_value(const struct query_kv *kv, size_t n, const char *key)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!strcmp(kv[i].key, key))
			return kv[i].value;
	return NULL;
}

static const char *find_group_value(const struct query_run *r, const char *field)
{
	if (!strncmp(field, "params.", 7))
		return find_kv_value(r->params, r->param_count, field + 7);
	if (!strncmp(field, "tags.", 5))
		return find_kv_value(r->tags, r->tag_count, field + 5);
	return r->status;
}

static bool check_group_fields(struct call *c, const char *const *fields, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!(!strncmp(fields[i], "params.", 7) && fields[i][7]) &&
		    !(!strncmp(fields[i], "tags.", 5) && fields[i][5]) && strcmp(fields[i], "status"))
			return call_fail(c, CALL_bad_value, "group_by",
					 "group_by: expected params.NAME, tags.NAME or status"),
			       false;
	return true;
}

/* Assigns a run to its group. The key of a group is the list of its values, with a mark for a missing one. */
static bool assign_group(struct call *c, struct map *known, struct groups *g, const struct query_run *r, size_t at)
{
	const char **values = arena_array(c->arena, g->field_count + 1, sizeof(*values));
	struct buf text;
	size_t i, *place;

	buf_init(&text, (size_t)1 << 24);
	for (i = 0; values && i < g->field_count; i++) {
		values[i] = find_group_value(r, g->fields[i]);
		buf_addc(&text, values[i] ? '=' : '-');
		buf_adds(&text, values[i] ? values[i] : "");
		buf_addc(&text, '\0');
	}
	place = values && !buf_failed(&text) ? map_put(known, text.data ? text.data : "", text.len) : NULL;
	buf_done(&text);
	if (!place)
		return false;
	if (!*place) {
		*place = ++g->count;
		g->values[*place - 1] = values;
	}
	g->of[at] = *place - 1;
	g->sizes[*place - 1]++;
	return true;
}

bool groups_make(struct call *c, const char *const *fields, size_t n, const struct query_runs *runs,
		 struct groups *ret)
{
	struct map *known = check_group_fields(c, fields, n) ? map_new(sizeof(size_t)) : NULL;
	struct groups g = { .fields = fields, .field_count = n };
	bool ok;
	size_t i;

	if (c->status >= 300)
		return false;
	g.of = arena_array(c->arena, runs->count + 1, sizeof(*g.of));
	g.values = arena_array(c->arena, runs->count + 1, sizeof(*g.values));
	g.sizes = arena_array(c->arena, runs->count + 1, sizeof(*g.sizes));
	ok = known && g.of && g.values && g.sizes;
	if (ok)
		memset(g.sizes, 0, (runs->count + 1) * sizeof(*g.sizes));
	for (i = 0; ok && i < runs->count; i++)
		ok = assign_group(c, known, &g, &runs->items[i], i);
	map_free(known);
	if (!ok)
		return call_fail(c, CALL_busy, NULL, "out of memory"), false;
	*ret = g;
	return true;
}

void groups_write(struct js *j, const struct groups *g, size_t group, const struct query_runs *runs)
{
	size_t i;

	js_key(j, "group");
	js_open(j, '{');
	for (i = 0; i < g->field_count; i++)
		js_key_str(j, g->fields[i], g->values[group][i]);
	js_close(j, '}');
	js_key(j, "runs");
	js_open(j, '[');
	for (i = 0; i < runs->count; i++)
		if (g->of[i] == group)
			js_str(j, runs->items[i].id);
	js_close(j, ']');
}

struct groups_sum groups_sum(const double *values, size_t n)
{
	struct groups_sum s = { 0, NAN, NAN };
	double sum = 0, squares = 0;
	size_t i;

	for (i = 0; i < n; i++)
		if (isfinite(values[i])) {
			sum += values[i];
			s.n++;
		}
	if (!s.n)
		return s;
	s.mean = sum / (double)s.n;
	for (i = 0; i < n; i++)
		if (isfinite(values[i]))
			squares += (values[i] - s.mean) * (values[i] - s.mean);
	if (s.n > 1)
		s.std = sqrt(squares / (double)(s.n - 1));
	return s;
}

/* P(|T| < t) for an integer number of degrees of freedom: finite sums 26.7.3 and 26.7.4 of Abramowitz and Stegun. */
static double student_t_within(double t, size_t freedom)
{
	double angle = atan(t / sqrt((double)freedom)), cosine = cos(angle), square = cosine * cosine;
	double term = freedom % 2 ? cosine : 1, sum = 0;
	size_t k;

	for (k = freedom % 2 ? 3 : 2; k <= freedom; k += 2) {
		sum += term;
		term *= square * (double)(k - 1) / (double)k;
	}
	return freedom % 2 ? (angle + sin(angle) * sum) * M_2_PI : sin(angle) * sum;
}

double groups_t975(size_t freedom)
{
	double low = 0, high = 13, middle;
	int i;

	if (!freedom)
		return 0;
	for (i = 0; i < 200 && low < (middle = (low + high) / 2) && middle < high; i++)
		if (student_t_within(middle, freedom) < 0.95)
			low = middle;
		else
			high = middle;
	return high;
}
