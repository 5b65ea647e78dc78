/* space.c: the values of a trial from its number. */
#include "trainer/sweep/space.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/graph/rng.h"

#define GRID_MAX 1000000

enum param_kind { KIND_VALUES, KIND_UNIFORM, KIND_LOG, KIND_INT };

struct sweep_param {
	const char *name;
	enum param_kind kind;
	json_t *values;
	double min, max;
};

struct search_space {
	uint64_t seed;
	size_t count;
	struct sweep_param params[];
};

static int refuse_parameter(struct err *err, const char *name, const char *what)
{
	return err_set(err, ERR_USAGE, "parameters: %.100s: %s", name, what);
}

static int read_distribution(struct sweep_param *p, json_t *of, struct err *err)
{
	json_t *min = json_object_get(of, "min"), *max = json_object_get(of, "max");
	const char *word = json_string_value(json_object_get(of, "distribution"));
	bool whole = json_is_integer(min) && json_is_integer(max);

	if (!json_is_number(min) || !json_is_number(max) || json_number_value(min) > json_number_value(max))
		return refuse_parameter(err, p->name,
					"expected {\"values\": [...]} or {\"min\": A, \"max\": B}, A <= B");
	p->min = json_number_value(min);
	p->max = json_number_value(max);
	word = word ? word : whole ? "int_uniform" : "uniform";
	p->kind = !strcmp(word, "uniform") ? KIND_UNIFORM : !strcmp(word, "int_uniform") ? KIND_INT : KIND_LOG;
	if (p->kind == KIND_LOG && strcmp(word, "log_uniform_values"))
		return refuse_parameter(err, p->name,
					"distribution: expected uniform, log_uniform_values or int_uniform");
	if (p->kind == KIND_LOG && p->min <= 0)
		return refuse_parameter(err, p->name, "log_uniform_values: min must be above 0");
	return 0;
}

static int read_param(struct sweep_param *p, const char *name, json_t *of, struct err *err)
{
	size_t i;
	json_t *v;

	p->name = name;
	p->values = json_object_get(of, "values");
	if (!p->values)
		return read_distribution(p, of, err);
	if (!json_array_size(p->values))
		return refuse_parameter(err, name, "values: expected a list of at least one value");
	json_array_foreach(p->values, i, v)
		if (!json_is_number(v) && !json_is_string(v) && !json_is_boolean(v))
			return refuse_parameter(err, name, "values: expected numbers, texts, true or false");
	return 0;
}

int space_new(struct search_space **ret, json_t *parameters, uint64_t seed, struct err *err)
{
	size_t n = json_object_size(parameters);
	struct search_space *s = calloc(1, sizeof(*s) + n * sizeof(s->params[0]));
	const char *name;
	json_t *of;
	int rc = 0;

	if (!s)
		return err_set(err, ERR_NOMEM, "out of memory");
	s->seed = seed;
	if (!n)
		rc = err_set(err, ERR_USAGE, "parameters: expected at least one, as in {\"lr\": {\"values\": [0.1]}}");
	json_object_foreach(parameters, name, of)
		if (!rc)
			rc = read_param(&s->params[s->count++], name, of, err);
	if (rc) {
		free(s);
		return rc;
	}
	*ret = s;
	return 0;
}

void space_free(struct search_space *s)
{
	free(s);
}

size_t space_params(const struct search_space *s)
{
	return s->count;
}

const char *space_name(const struct search_space *s, size_t param)
{
	return s->params[param].name;
}

size_t space_grid(const struct search_space *s)
{
	size_t n = 1;

	for (size_t i = 0; i < s->count; i++) {
		size_t values = json_array_size(s->params[i].values);

		if (!values || n > GRID_MAX / values)
			return 0;
		n *= values;
	}
	return n;
}

/* Prints the fewest digits that read back. */
static void print_shortest_real(double v, char *to)
{
	for (int digits = 6; digits <= 17; digits++) {
		snprintf(to, SPACE_VALUE_BYTES, "%.*g", digits, v);
		if (strtod(to, NULL) == v)
			return;
	}
}

static void print_json_value(json_t *v, char *to, bool *ret_bool)
{
	*ret_bool = json_is_boolean(v);
	if (json_is_string(v))
		snprintf(to, SPACE_VALUE_BYTES, "%s", json_string_value(v));
	else if (json_is_integer(v))
		snprintf(to, SPACE_VALUE_BYTES, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
	else if (json_is_real(v))
		print_shortest_real(json_real_value(v), to);
	else
		snprintf(to, SPACE_VALUE_BYTES, "%s", json_is_true(v) ? "true" : "false");
}

/* Draws from a random stream of this parameter, so that another parameter does not change its values. */
static void draw_param_value(const struct search_space *s, const struct sweep_param *p, size_t trial, char *to,
			     bool *ret_bool)
{
	struct rng_key key = { .seed = s->seed, .stream = rng_stream(p->name) ^ rng_stream("sweep") };
	double u = rng_uniform(key, trial);

	*ret_bool = false;
	if (p->kind == KIND_VALUES)
		print_json_value(json_array_get(p->values, rng_below(key, trial, json_array_size(p->values))), to,
				 ret_bool);
	else if (p->kind == KIND_INT)
		snprintf(to, SPACE_VALUE_BYTES, "%.0f", p->min + floor(u * (p->max - p->min + 1)));
	else /* four digits are enough to draw, and can be typed again */
		snprintf(to, SPACE_VALUE_BYTES, "%.4g",
			 p->kind == KIND_LOG ? p->min * pow(p->max / p->min, u) : p->min + u * (p->max - p->min));
}

void space_value(const struct search_space *s, bool grid, size_t trial, size_t param, char *to, bool *ret_bool)
{
	if (!grid) {
		draw_param_value(s, &s->params[param], trial, to, ret_bool);
		return;
	}
	for (size_t i = s->count - 1; i > param; i--)
		trial /= json_array_size(s->params[i].values);
	print_json_value(json_array_get(s->params[param].values, trial % json_array_size(s->params[param].values)), to,
			 ret_bool);
}
