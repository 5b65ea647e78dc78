/* SPDX-License-Identifier: Apache-2.0 */
/* shard_entries.c: the entries of a list of shards, and the index files that `dptrain shard` and wids
 * (https://github.com/webdataset/webdataset) write: a list of shards with their sizes, and what all have in common. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tracker/base/file.h"
#include "tracker/base/utf8.h"
#include "tracker/mem/mem.h"
#include "trainer/data/container/shard_list.h"
#include "trainer/data/store/data_objects.h"

#define WIDS_KIND "wids-shard-index-v1"
#define INDEX_BYTES_MAX ((size_t)256 << 20)

int shard_list_append(struct shard_list *l, const char *address, struct err *err)
{
	int cap = l->cap;

	if (l->n >= SHARD_LIST_MAX)
		return err_set(err, ERR_USAGE, "%.200s: more than %d shards", address, SHARD_LIST_MAX);
	mem_reserve(&l->address, &cap, l->n + 1); /* both arrays have the same capacity */
	mem_reserve(&l->sums, &l->cap, cap);
	l->sums[l->n] = (struct shard_sums){ .n = 0 };
	l->address[l->n++] = mem_strdup(address);
	return 0;
}

void shard_list_done(struct shard_list *l)
{
	for (int i = 0; i < l->n; i++) {
		free(l->address[i]);
		free(l->sums[i].at);
		free(l->sums[i].labels);
		free(l->sums[i].version);
	}
	free(l->address);
	free(l->sums);
	free(l->facts.names);
	*l = (struct shard_list){ .n = 0 };
}

/* ---- index files ---- */

static void read_json_numbers(const json_t *from, const char *name, double ret[4])
{
	const json_t *list = json_object_get(from, name);

	for (size_t i = 0; i < 4 && i < json_array_size(list); i++)
		ret[i] = json_number_value(json_array_get(list, i));
}

/* Returns the texts of a list and pointers to them in one block; NULL: an empty list, or an entry is not a text. */
static const char **copy_names(const json_t *list)
{
	size_t bytes = 0, n = json_array_size(list);
	const char **names;
	char *at;

	for (size_t i = 0; i < n; i++) {
		if (!json_is_string(json_array_get(list, i)))
			return NULL;
		bytes += strlen(json_string_value(json_array_get(list, i))) + 1;
	}
	if (!n)
		return NULL;
	names = mem_alloc(n * sizeof(*names) + bytes);
	at = (char *)(names + n);
	for (size_t i = 0; i < n; i++) {
		names[i] = at;
		at = stpcpy(at, json_string_value(json_array_get(list, i))) + 1;
	}
	return names;
}

static void read_index_facts(struct shard_list *l, const json_t *root)
{
	const json_t *ours = json_object_get(root, "dptrain");
	const json_t *named = json_object_get(root, "classes");
	size_t classes = json_array_size(named),
	       channels = json_array_size(json_object_get(ours, "mean"));

	free(l->facts.names);
	l->facts = (struct shard_facts){ .classes = classes < INT_MAX ? (int)classes : 0,
					 .names = classes < INT_MAX ? copy_names(named) : NULL,
					 .decoded = json_is_true(json_object_get(ours, "decoded")),
					 .channels = channels <= 4 ? (int)channels : 0 };
	read_json_numbers(ours, "mean", l->facts.mean);
	read_json_numbers(ours, "std", l->facts.std);
	for (int i = 0; i < l->facts.channels; i++)
		if (!(l->facts.std[i] > 0 && l->facts.std[i] < 1e6 && fabs(l->facts.mean[i]) < 1e6))
			l->facts.channels = 0;
}

/* Names in an index are relative to the index's folder. */
static int resolve_shard_url(char ret[PATH_MAX], const char *index, const char *url, struct err *err)
{
	const char *slash = strrchr(index, '/');
	int folder = slash && *url != '/' && !strstr(url, "://") ? (int)(slash + 1 - index) : 0;

	if (snprintf(ret, PATH_MAX, "%.*s%s", folder, index, url) < PATH_MAX)
		return 0;
	return err_set(err, ERR_USAGE, "%.300s: a shard's name is too long", index);
}

/* Reads the checksums of a shard. Missing or malformed checksums are ignored. */
static void read_shard_crcs(struct shard_sums *ret, const json_t *entry)
{
	const json_t *list = json_object_get(entry, "crc32c");
	const size_t n = json_array_size(list);
	uint32_t *sums;
	char *end;

	if (!n)
		return;
	sums = mem_array(n, sizeof(*sums));
	for (size_t i = 0; i < n; i++) {
		const char *hex = json_string_value(json_array_get(list, i));

		sums[i] = hex ? (uint32_t)strtoul(hex, &end, 16) : 0;
		if (!hex || !*hex || *end) {
			free(sums);
			return;
		}
	}
	free(ret->at);
	ret->at = sums;
	ret->n = n;
}

static void read_shard_facts(struct shard_sums *ret, const json_t *entry)
{
	const char *labels = json_string_value(json_object_get(entry, "labels"));
	json_int_t bytes = json_integer_value(json_object_get(entry, "filesize"));

	ret->bytes = bytes > 0 ? (uint64_t)bytes : 0;
	if (labels && !ret->labels)
		ret->labels = mem_strdup(labels);
	read_shard_crcs(ret, entry);
}

/* Finds a shard among those of a listing, which are sorted by name. -1: not there. */
static int find_listed_shard(const struct shard_list *l, int listed, const char *address)
{
	int low = listed, high = l->n;

	while (low < high) {
		int middle = low + (high - low) / 2, order = strcmp(l->address[middle], address);

		if (!order)
			return middle;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return -1;
}

/* Merges a shard of an index: appends it, or adds what the index states to the one that was listed. */
static int merge_index_shard(struct shard_list *l, const char *index, const json_t *entry, int listed, struct err *err)
{
	const char *url = json_string_value(json_object_get(entry, "url"));
	char path[PATH_MAX];
	int rc = url ? resolve_shard_url(path, index, url, err)
		     : err_set(err, ERR_USAGE, "%.300s: a shard has no \"url\"", index),
	    at;

	if (rc)
		return rc;
	if (listed == WIDS_NOT_LISTED)
		rc = shard_list_append(l, path, err);
	at = listed == WIDS_NOT_LISTED ? l->n - 1 : find_listed_shard(l, listed, path);
	if (!rc && at < 0)
		return err_set(err, ERR_USAGE,
			       "%.300s: lists %.100s, which is missing: restore it, or remove it from the index", index,
			       url);
	if (!rc)
		read_shard_facts(&l->sums[at], entry);
	return rc;
}

static json_t *parse_index_text(const struct buf *text, json_error_t *where)
{
	const char *begin = text->data ? text->data : "";
	const size_t mark = utf8_mark(begin, text->len);

	return json_loadb(begin + mark, text->len - mark, JSON_REJECT_DUPLICATES, where);
}

int wids_read(struct shard_list *l, const char *path, int listed, struct err *err)
{
	json_error_t where = { .text = "" };
	struct buf text;
	json_t *root;
	const json_t *list;
	const char *kind;
	int rc;

	buf_init(&text, INDEX_BYTES_MAX + 1);
	rc = objects_text(path, &(struct objects_opts){ .timeout_s = l->timeout_s }, INDEX_BYTES_MAX, &text, err);
	root = rc ? NULL : parse_index_text(&text, &where);
	buf_done(&text);
	if (rc)
		return rc;
	list = json_object_get(root, "shardlist");
	kind = json_string_value(json_object_get(root, "__kind__"));
	if (!root)
		rc = err_set(err, ERR_USAGE, "%.300s:%d: %.100s", path, where.line, where.text);
	else if (!kind || strcmp(kind, WIDS_KIND) || !json_array_size(list))
		rc = err_set(err, ERR_USAGE,
			     "%.300s: is not an index of shards: expected __kind__ " WIDS_KIND " and a shardlist",
			     path);
	for (size_t i = 0; !rc && i < json_array_size(list); i++)
		rc = merge_index_shard(l, path, json_array_get(list, i), listed, err);
	if (!rc)
		read_index_facts(l, root);
	json_decref(root);
	return rc;
}

bool wids_probe(const char *path)
{
	const size_t n = strlen(path);
	struct buf text;
	const char *kind;
	json_t *root;
	bool found;

	if (n < 6 || strcmp(path + n - 5, ".json"))
		return false;
	buf_init(&text, INDEX_BYTES_MAX + 1);
	root = file_load(&text, path, NULL) ? NULL : parse_index_text(&text, NULL);
	buf_done(&text);
	kind = json_string_value(json_object_get(root, "__kind__"));
	found = kind && !strcmp(kind, WIDS_KIND);
	json_decref(root);
	return found;
}
