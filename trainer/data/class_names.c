/* SPDX-License-Identifier: Apache-2.0 */
/* class_names.c: names of classes as JSON, and labels by the names that weights were trained on. */
#include "trainer/data/class_names.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tracker/mem/mem.h"

#define NAMES_SAID 5

json_t *class_names_json_text(const char *text)
{
	json_t *s = json_string(text);
	char copy[1024];

	if (s)
		return s;
	snprintf(copy, sizeof(copy), "%s", text);
	for (char *at = copy; *at; at++)
		*at = (unsigned char)*at < 0x80 ? *at : '?';
	return json_string(copy);
}

json_t *class_names_json(const struct dataset *d, int most)
{
	json_t *names = json_array();

	for (int i = 0; i < d->n_class_names && i < most; i++)
		json_array_append_new(names, class_names_json_text(d->class_names[i]));
	return names;
}

char *class_names_text(const struct dataset *d)
{
	json_t *names = class_names_json(d, INT_MAX);
	char *text = json_dumps(names, JSON_COMPACT);

	json_decref(names);
	return text;
}

/* Returns the index of a name; negative: it is not in the list. hint: where it probably is, since both are sorted. */
static int find_class(const json_t *list, const json_t *name, size_t hint)
{
	const size_t n = json_array_size(list);

	for (size_t k = 0; k < n; k++)
		if (json_equal(json_array_get(list, (hint + k) % n), name))
			return (int)((hint + k) % n);
	return -1;
}

static int refuse_class(const struct dataset *d, const struct class_names_trained *w, const json_t *list, int label,
			struct err *err)
{
	char known[400] = "";
	size_t at = 0, n = json_array_size(list), said = n < NAMES_SAID ? n : NAMES_SAID;

	for (size_t i = 0; i < said; i++)
		at += (size_t)snprintf(known + at, sizeof(known) - at, "%s%.60s", i ? ", " : "",
				       json_string_value(json_array_get(list, i)));
	return err_set(err, ERR_USAGE, "%.200s: class '%.60s' is unknown to %.200s, whose classes are %s%s: evaluate a "
				       "set with these names",
		       d->path, d->class_names[label], w->path, known, n > said ? ", …" : "");
}

static int map_labels(struct dataset *d, const struct class_names_trained *w, const json_t *list, struct err *err)
{
	int32_t *to = mem_array((size_t)d->classes, sizeof(*to));
	int found = -1, rc = 0;

	for (int i = 0; !rc && i < d->classes; i++) {
		json_t *name = i < d->n_class_names ? class_names_json_text(d->class_names[i]) : NULL;

		to[i] = found = name ? find_class(list, name, (size_t)(found + 1)) : -1;
		json_decref(name);
		if (i < d->n_class_names && found < 0)
			rc = refuse_class(d, w, list, i, err);
	}
	if (rc) {
		free(to);
		return rc;
	}
	d->relabel = to;
	d->n_relabel = d->classes;
	d->classes = (int)json_array_size(list);
	return 0;
}

int class_names_match(struct dataset *d, const struct class_names_trained *w, struct err *err)
{
	json_t *list = w->names ? json_loads(w->names, 0, NULL) : NULL;
	int rc = 0;

	if (w->names && !json_array_size(list))
		rc = err_set(err, ERR_USAGE, "%.300s: its class_names are not a JSON list", w->path);
	else if (d->n_class_names && list)
		rc = map_labels(d, w, list, err);
	else if (!d->n_class_names && d->classes < w->classes)
		d->classes = w->classes;
	json_decref(list);
	return rc;
}
