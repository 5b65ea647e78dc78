/* SPDX-License-Identifier: Apache-2.0 */
/* content.c: JSON of other trackers as numbers, texts, histograms and tables. */
#include "tracker/mem/mem.h"
#include "web/cli/import/importer.h"

#include <stdlib.h>

#define CONTENT_MAX ((size_t)64 << 20)
#define BINS_MAX 100000

double content_number(json_t *value)
{
	const char *word = json_string_value(value);

	if (word)
		return !strcmp(word, "Infinity") ? INFINITY : !strcmp(word, "-Infinity") ? -INFINITY : NAN;
	return json_is_number(value) ? json_number_value(value) : json_is_boolean(value) ? json_is_true(value) : NAN;
}

bool content_is_number(json_t *value)
{
	const char *word = json_string_value(value);

	return json_is_number(value) || json_is_boolean(value) ||
	       (word && (!strcmp(word, "NaN") || !strcmp(word, "Infinity") || !strcmp(word, "-Infinity")));
}

/* Prints a value unchanged; numbers with the fewest digits that read back. */
static void print_json_value(struct js *j, json_t *value)
{
	const char *name;
	json_t *inner;
	size_t i;

	if (json_is_object(value)) {
		js_open(j, '{');
		json_object_foreach(value, name, inner) {
			js_key(j, name);
			print_json_value(j, inner);
		}
		js_close(j, '}');
	} else if (json_is_array(value)) {
		js_open(j, '[');
		json_array_foreach(value, i, inner)
			print_json_value(j, inner);
		js_close(j, ']');
	} else if (json_is_string(value)) {
		js_str(j, json_string_value(value));
	} else if (json_is_integer(value)) {
		js_int(j, json_integer_value(value));
	} else if (json_is_real(value)) {
		js_double(j, json_real_value(value));
	} else {
		js_raw(j, json_is_true(value) ? "true" : json_is_false(value) ? "false" : "null");
	}
}

char *content_text(json_t *value)
{
	struct js j = { 0 };
	struct buf out;

	if (json_is_string(value))
		return mem_strdup(json_string_value(value));
	buf_init(&out, CONTENT_MAX);
	j.out = &out;
	print_json_value(&j, value);
	return buf_take(&out, NULL);
}

bool content_add_histogram(struct buf *to, json_t *histogram)
{
	json_t *counts = json_object_get(histogram, "values"), *edges = json_object_get(histogram, "bins");
	size_t n = json_array_size(counts), i;
	double *numbers;

	if (!n || n > BINS_MAX || json_array_size(edges) != n + 1)
		return false;
	numbers = mem_array(2 * n + 1, sizeof(*numbers));
	for (i = 0; i <= n; i++) {
		numbers[i] = json_number_value(json_array_get(edges, i));
		if (i < n)
			numbers[n + 1 + i] = json_number_value(json_array_get(counts, i));
	}
	media_add_histogram(to, numbers, numbers + n + 1, n);
	free(numbers);
	return true;
}

bool content_add_table(struct buf *to, json_t *table)
{
	json_t *columns = json_object_get(table, "columns"), *data = json_object_get(table, "data");
	size_t width = json_array_size(columns), height = json_array_size(data) + 1, i;
	struct event_text *cells = width ? mem_array(width * height, sizeof(*cells)) : NULL;
	char **texts = cells ? mem_array(width * height, sizeof(*texts)) : NULL;

	for (i = 0; texts && i < width * height; i++) {
		json_t *row = i < width ? columns : json_array_get(data, i / width - 1);

		texts[i] = content_text(json_array_get(row, i % width));
		cells[i] = (struct event_text){ texts[i] ? texts[i] : "", texts[i] ? strlen(texts[i]) : 0 };
	}
	if (texts)
		media_add_table(to, cells, height, width);
	for (i = 0; texts && i < width * height; i++)
		free(texts[i]);
	free(cells);
	free(texts);
	return texts != NULL;
}
