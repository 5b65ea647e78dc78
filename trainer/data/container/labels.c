/* SPDX-License-Identifier: Apache-2.0 */
/* labels.c: parses labels, and numbers the names of classes. */
#include "trainer/data/container/labels.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tracker/base/hash.h"
#include "tracker/base/utf8.h"
#include "tracker/mem/mem.h"

#define NAMES_BYTES_MAX ((size_t)1 << 31)
#define NUMBER_BYTES_MAX 40
#define NOT_INTEGER "its label is not an integer >= 0"
#define TOO_LARGE "its label is larger than 2147483646"
#define TABLE_LEAST 64

static const char missing[] = "has no label";

struct sample_label label_missing(void)
{
	return (struct sample_label){ .wrong = missing };
}

bool label_is_missing(const struct sample_label *l)
{
	return l->wrong == missing;
}

struct sample_label label_of_number(int64_t number)
{
	const char *wrong = number < 0 ? NOT_INTEGER : number > LABELS_MOST ? TOO_LARGE : NULL;

	return (struct sample_label){ .number = number, .wrong = wrong };
}

struct sample_label label_of_real(double value)
{
	if (isnan(value))
		return label_missing();
	if (value != floor(value) || fabs(value) > (double)LABELS_MOST)
		return (struct sample_label){ .wrong = value > (double)LABELS_MOST ? TOO_LARGE : NOT_INTEGER };
	return label_of_number((int64_t)value);
}

/* Parses a number that fills the text. */
static bool parse_label_number(const char *text, size_t n, double *ret)
{
	char copy[NUMBER_BYTES_MAX + 1], *end;

	if (!n || n > NUMBER_BYTES_MAX || !strchr("0123456789+-.", text[0]) || memchr(text, 'x', n) ||
	    memchr(text, 'X', n))
		return false;
	memcpy(copy, text, n);
	copy[n] = '\0';
	*ret = strtod(copy, &end);
	return end == copy + n;
}

struct sample_label label_of_text(const char *text, size_t n)
{
	const char *begin = text;
	double number;

	text += utf8_mark(text, n);
	n -= (size_t)(text - begin);
	for (; n && (isspace((unsigned char)*text) || !*text); n--)
		text++;
	while (n && (isspace((unsigned char)text[n - 1]) || !text[n - 1]))
		n--;
	if (!n)
		return label_missing();
	if (parse_label_number(text, n, &number))
		return label_of_real(number);
	if (n > LABELS_NAME_MAX || memchr(text, '\0', n))
		return (struct sample_label){ .wrong = "its label is too long, or binary" };
	return (struct sample_label){ .name = text, .n = n };
}

/* Finds a member by its path. */
static const json_t *find_json_member(const json_t *root, const char *path)
{
	const json_t *found = json_object_get(root, path);
	char name[256];

	for (const char *dot = strchr(path, '.'); !found && dot; dot = strchr(dot + 1, '.')) {
		snprintf(name, sizeof(name), "%.*s", (int)(dot - path), path);
		found = json_object_get(root, name);
		found = found ? find_json_member(found, dot + 1) : NULL;
	}
	return found;
}

static struct sample_label list_json_members(json_t *root, const char *path, struct buf *keep)
{
	const char *name, *between = "";
	json_t *value;

	buf_reset(keep);
	buf_addf(keep, "its JSON has no member %.60s (--label-field): it has", path);
	json_object_foreach(root, name, value) {
		if (keep->len > 250)
			break;
		buf_addf(keep, "%s %.60s", between, name);
		between = ",";
	}
	buf_adds(keep, *between ? "" : " none");
	buf_addc(keep, '\0');
	return (struct sample_label){ .wrong = keep->data };
}

/* Makes empty texts of NaN and Infinity, which Python writes and JSON lacks. */
static void blank_nonfinite(char *text, size_t n)
{
	bool quoted = false;

	for (size_t i = 0; i + 3 <= n; i++) {
		size_t word = !memcmp(text + i, "NaN", 3) ? 3 : i + 8 <= n && !memcmp(text + i, "Infinity", 8) ? 8 : 0;

		quoted ^= text[i] == '"';
		i += quoted && text[i] == '\\';
		if (quoted || !word)
			continue;
		memset(text + i, ' ', word);
		memset(text + i, '"', 2);
		if (i && text[i - 1] == '-')
			text[i - 1] = ' ';
		i += word - 1;
	}
}

struct sample_label label_of_json(const char *text, size_t n, const char *path, struct buf *keep)
{
	const size_t mark = utf8_mark(text, n);
	json_t *root = json_loadb(text + mark, n - mark, JSON_REJECT_DUPLICATES, NULL);
	const json_t *found;
	struct sample_label l = { .wrong = "its JSON label is neither a number, a text nor a truth value" };

	if (!root) {
		buf_reset(keep);
		buf_add(keep, text + mark, n - mark);
		blank_nonfinite(keep->data, keep->len);
		root = json_loadb(keep->data ? keep->data : "", keep->len, JSON_REJECT_DUPLICATES, NULL);
	}
	found = find_json_member(root, path);
	if (!json_is_object(root)) {
		l.wrong = "its JSON is damaged, or not an object";
	} else if (!found) {
		l = list_json_members(root, path, keep);
	} else if (json_is_string(found)) {
		buf_reset(keep);
		buf_add(keep, json_string_value(found), json_string_length(found));
		l = label_of_text(keep->data ? keep->data : "", keep->len);
	} else if (json_is_number(found)) {
		l = json_is_integer(found) ? label_of_number(json_integer_value(found))
					   : label_of_real(json_real_value(found));
	} else if (json_is_boolean(found)) {
		l = label_of_number(json_is_true(found));
	} else if (json_is_null(found)) {
		l = label_missing();
	}
	json_decref(root);
	return l;
}

/* ---- names ---- */

int64_t label_names_stated(const char *json, size_t n, const char *column, struct buf *ret)
{
	json_t *root = json_loadb(json, n, 0, NULL);
	const json_t *features = find_json_member(root, "info.features"), *name;
	const json_t *names = json_object_get(find_json_member(features, column), "names");
	const int64_t count = (int64_t)json_array_size(names);
	size_t i;

	json_array_foreach(names, i, name)
		buf_add(ret, json_is_string(name) ? json_string_value(name) : "", json_string_length(name) + 1);
	json_decref(root);
	return count;
}

struct sample_label label_below(struct sample_label l, int64_t classes)
{
	if (classes && !l.name && !l.wrong && l.number >= classes)
		l.wrong = "its label is above those that the schema names";
	return l;
}

void label_names_init(struct label_names *l)
{
	*l = (struct label_names){ .table = NULL };
	buf_init(&l->text, NAMES_BYTES_MAX);
	buf_init(&l->offset, NAMES_BYTES_MAX);
}

void label_names_done(struct label_names *l)
{
	buf_done(&l->text);
	buf_done(&l->offset);
	free(l->table);
	*l = (struct label_names){ .table = NULL };
}

int32_t label_names_count(const struct label_names *l)
{
	return (int32_t)(l->offset.len / sizeof(uint32_t));
}

const char *label_names_at(const struct label_names *l, int32_t i)
{
	return l->text.data + ((const uint32_t *)(const void *)l->offset.data)[i];
}

/* Returns the place of a name in the table, or the free place where it belongs. */
static uint32_t *find_name_place(const struct label_names *l, const char *name, size_t n)
{
	const uint64_t hash = hash_fnv(HASH_FNV_BEGIN, name, n);

	for (size_t at = (hash ^ hash >> 32) & (l->cap - 1);; at = (at + 1) & (l->cap - 1)) {
		const char *there = l->table[at] ? label_names_at(l, (int32_t)l->table[at] - 1) : NULL;

		if (!there || (!strncmp(there, name, n) && !there[n]))
			return &l->table[at];
	}
}

/* Keeps half of the table free. */
static void grow_name_table(struct label_names *l)
{
	const int32_t n = label_names_count(l);
	const size_t cap = l->cap ? 2 * l->cap : TABLE_LEAST;

	if ((size_t)n < l->cap / 2)
		return;
	free(l->table);
	l->table = mem_array(cap, sizeof(*l->table));
	l->cap = cap;
	for (int32_t i = 0; i < n; i++)
		*find_name_place(l, label_names_at(l, i), strlen(label_names_at(l, i))) = (uint32_t)i + 1;
}

int32_t label_names_add(struct label_names *l, const char *name, size_t n)
{
	const uint32_t at = (uint32_t)l->text.len;
	uint32_t *place;

	grow_name_table(l);
	place = find_name_place(l, name, n);
	if (!*place) {
		buf_add(&l->text, name, n);
		buf_addc(&l->text, '\0');
		buf_add(&l->offset, &at, sizeof(at));
		*place = (uint32_t)label_names_count(l);
	}
	return (int32_t)*place - 1;
}

struct ranked_name {
	const char *name;
	int32_t number;
};

static int compare_ranked_names(const void *a, const void *b)
{
	return strcmp(((const struct ranked_name *)a)->name, ((const struct ranked_name *)b)->name);
}

int label_names_check(const struct label_names *l, struct err *err)
{
	return buf_failed(&l->text) || buf_failed(&l->offset)
		       ? err_set(err, ERR_USAGE, "the names of labels exceed 2 GiB: expected names of classes")
		       : 0;
}

int32_t *label_names_sort(const struct label_names *l, struct buf *ret)
{
	const int32_t n = label_names_count(l);
	struct ranked_name *sorted = mem_array((size_t)n, sizeof(*sorted));
	int32_t *rank = mem_array((size_t)n, sizeof(*rank));

	for (int32_t i = 0; i < n; i++)
		sorted[i] = (struct ranked_name){ label_names_at(l, i), i };
	qsort(sorted, (size_t)n, sizeof(*sorted), compare_ranked_names);
	for (int32_t i = 0; i < n; i++) {
		rank[sorted[i].number] = i;
		buf_add(ret, sorted[i].name, strlen(sorted[i].name) + 1);
	}
	free(sorted);
	return rank;
}
