/* SPDX-License-Identifier: Apache-2.0 */
/* webdataset.c: groups entries into samples and reads their labels. */
#include "trainer/data/container/webdataset.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tracker/mem/mem.h"
#include "trainer/data/container/tar_walk.h"

#define NOT_NUMBERS 500 /* added to the rank of a usual name of labels whose column has no numbers */

/* The sample whose entries are being read. */
struct sample_group {
	char key[WEBDATASET_NAME_MAX + 1];
	char name[WEBDATASET_NAME_MAX + 1]; /* of the picture's entry */
	bool open, twice;
	char fields[512]; /* ";jpg;cls;" */
	struct sample sample;
	int image_rank, label_rank; /* positions in the field lists; the best so far */
	struct sample_label label;
	char class_name[LABELS_NAME_MAX];
};

struct webdataset_groups {
	struct webdataset_into into;
	struct sample_group group;
	struct buf json; /* what a label of JSON points to */
};

/* Programs write entries "__x__" next to samples. */
static bool is_marker(const char *part, size_t n)
{
	return n >= 4 && !memcmp(part, "__", 2) && !memcmp(part + n - 2, "__", 2);
}

bool webdataset_split(const char *name, size_t *ret_key, char ret_field[WEBDATASET_FIELD_MAX])
{
	const char *base = strrchr(name, '/') ? strrchr(name, '/') + 1 : name, *dot = strchr(base, '.');
	size_t n = dot ? strlen(dot + 1) : 0;

	if (!dot || dot == base || !n || n >= WEBDATASET_FIELD_MAX || strchr(dot, ';') ||
	    is_marker(name, strcspn(name, "/")))
		return false;
	for (size_t i = 0; i <= n; i++)
		ret_field[i] = (char)tolower((unsigned char)dot[1 + i]);
	*ret_key = (size_t)(dot - name);
	return true;
}

/* Returns the position of a field in a list, or WEBDATASET_NO_RANK. *ret_member: the text after the field's colon,
 * or "". */
static int rank_field(const char *list, const char *field, char ret_member[WEBDATASET_FIELD_MAX])
{
	size_t n = strlen(field);

	for (int rank = 0; *list; rank++) {
		size_t length = strcspn(list, ";"), word = strcspn(list, ";:");

		if (word == n && !strncasecmp(list, field, n)) {
			if (ret_member)
				snprintf(ret_member, WEBDATASET_FIELD_MAX, "%.*s",
					 (int)(length > word ? length - word - 1 : 0), list + word + 1);
			return rank;
		}
		list += length;
		list += *list == ';';
	}
	return WEBDATASET_NO_RANK;
}

int webdataset_list(char ret[WEBDATASET_LIST_MAX], const char *list, bool given, const char *usual)
{
	int n = 1;

	snprintf(ret, WEBDATASET_LIST_MAX, "%.900s%s", list, given ? "" : usual);
	while ((list = strchr(list, ';'))) {
		list++;
		n++;
	}
	return n;
}

int webdataset_rank(const char *list, const char *field)
{
	return rank_field(list, field, NULL);
}

int webdataset_rank_column(const char *list, const char *column)
{
	char name[256];
	size_t n = strlen(column);

	n -= n > 6 && !strcmp(column + n - 6, ".bytes") ? 6 : 0;
	snprintf(name, sizeof(name), "%.*s", (int)n, column);
	return webdataset_rank(list, name);
}

int webdataset_rank_label(const char *list, int given, const char *column, bool number)
{
	int rank = webdataset_rank_column(list, column);

	return rank < WEBDATASET_NO_RANK && rank >= given && !number ? rank + NOT_NUMBERS : rank;
}

static int read_sample_label(struct webdataset_groups *s, const struct webdataset_entry *e, const char *member,
			     struct err *err)
{
	struct sample_group *g = &s->group;
	const char *text;
	int rc;

	g->label = (struct sample_label){ .wrong = "its label is too long" };
	if (e->bytes > WEBDATASET_LABEL_MAX)
		return 0;
	rc = s->into.text(s->into.user, e->offset, (size_t)e->bytes, &text, err);
	if (rc)
		return rc;
	g->label = *member ? label_of_json(text, (size_t)e->bytes, member, &s->json)
			   : label_of_text(text, (size_t)e->bytes);
	if (g->label.name) { /* the text is valid until the next call only */
		memcpy(g->class_name, g->label.name, g->label.n);
		g->label.name = g->class_name;
	}
	return 0;
}

/* Describes a sample without picture or label: names the fields that it has. */
static void lose_incomplete_group(struct webdataset_groups *s, const char *lacks)
{
	struct sample_group *g = &s->group;
	char fields[sizeof(g->fields)];
	size_t n = strlen(g->fields);

	snprintf(fields, sizeof(fields), "%s", n > 2 ? g->fields + 1 : "nothing;");
	fields[strlen(fields) - 1] = '\0';
	samples_lose(s->into.to, "%.200s: sample %.200s: %s: it has %.200s", s->into.name, g->key, lacks, fields);
}

static void finish_group(struct webdataset_groups *s)
{
	struct sample_group *g = &s->group;

	if (g->open && g->twice)
		samples_lose(s->into.to, "%.200s: sample %.200s: has a field twice", s->into.name, g->key);
	else if (g->open && g->image_rank == WEBDATASET_NO_RANK)
		lose_incomplete_group(s, "has no picture (--image-field)");
	else if (g->open && g->label_rank == WEBDATASET_NO_RANK)
		lose_incomplete_group(s, "has no label (--label-field)");
	else if (g->open && g->label.wrong)
		samples_lose(s->into.to, "%.200s: sample %.200s: %.300s", s->into.name, g->key, g->label.wrong);
	else if (g->open)
		samples_add_label(s->into.to, &g->sample, g->name, &g->label);
	g->open = false;
}

static void begin_group(struct sample_group *g, const char *name, size_t key, uint32_t object)
{
	g->open = true;
	g->twice = false;
	g->label = label_missing();
	g->image_rank = g->label_rank = WEBDATASET_NO_RANK;
	g->sample = (struct sample){ .object = object };
	memcpy(g->key, name, key);
	g->key[key] = '\0';
	snprintf(g->fields, sizeof(g->fields), ";");
}

/* Adds a field to the sample. Returns true if it is a repeated one. When the list is full, repeats are not noticed. */
static bool remember_field(struct sample_group *g, const char *field)
{
	char word[WEBDATASET_FIELD_MAX + 2];
	size_t n = strlen(g->fields);

	snprintf(word, sizeof(word), ";%s;", field);
	if (strstr(g->fields, word))
		return true;
	if (n + strlen(word) < sizeof(g->fields))
		memcpy(g->fields + n, word + 1, strlen(word));
	return false;
}

int webdataset_groups_entry(struct webdataset_groups *s, const struct webdataset_entry *e, struct err *err)
{
	struct sample_group *g = &s->group;
	char field[WEBDATASET_FIELD_MAX], member[WEBDATASET_FIELD_MAX];
	size_t key;
	int rank;

	if (!webdataset_split(e->name, &key, field))
		return 0;
	if (!g->open || strncmp(g->key, e->name, key) || g->key[key]) {
		finish_group(s);
		begin_group(g, e->name, key, s->into.object);
	}
	g->twice |= remember_field(g, field);
	rank = rank_field(s->into.fields->image, field, NULL);
	if (rank < g->image_rank && e->bytes <= UINT32_MAX) {
		g->image_rank = rank;
		g->sample.offset = e->offset;
		g->sample.bytes = (uint32_t)e->bytes;
		snprintf(g->name, sizeof(g->name), "%s", e->name);
	}
	rank = rank_field(s->into.fields->label, field, member);
	if (rank >= g->label_rank)
		return 0;
	g->label_rank = rank;
	return read_sample_label(s, e, member, err);
}

struct webdataset_groups *webdataset_groups_new(const struct webdataset_into *into)
{
	struct webdataset_groups *s = mem_zalloc(sizeof(*s));

	s->into = *into;
	buf_init(&s->json, WEBDATASET_LABEL_MAX);
	return s;
}

void webdataset_groups_end(struct webdataset_groups *s)
{
	finish_group(s);
}

void webdataset_groups_free(struct webdataset_groups *s)
{
	if (s)
		buf_done(&s->json);
	free(s);
}

/* ---- samples of a tar archive ---- */

static int read_tar_label(void *user, uint64_t offset, size_t n, const char **ret, struct err *err)
{
	return tar_walk_bytes(user, offset, n, ret, err);
}

static int group_tar_entries(struct tar_walk *w, struct webdataset_groups *s, struct err *err)
{
	struct tar_walk_entry e;
	int rc;

	while ((rc = tar_walk_next(w, &e, err)) > 0) {
		if (!e.name) {
			webdataset_groups_end(s);
			samples_lose(s->into.to, "%.200s: damaged from byte %llu to %llu: its samples are skipped",
				     s->into.name, (unsigned long long)e.offset,
				     (unsigned long long)(e.offset + e.bytes));
			continue;
		}
		rc = webdataset_groups_entry(s, &(struct webdataset_entry){ e.name, e.offset, e.bytes }, err);
		if (rc)
			return rc;
	}
	if (!rc)
		webdataset_groups_end(s);
	return rc;
}

int webdataset_scan(struct samples *to, const struct byte_source *archive, uint32_t object,
		    const struct webdataset_fields *f, struct err *err)
{
	struct tar_walk *w = tar_walk_new(archive);
	struct webdataset_groups *s =
		webdataset_groups_new(&(struct webdataset_into){ to, archive->name, f, object, read_tar_label, w });
	int rc = group_tar_entries(w, s, err);

	webdataset_groups_free(s);
	tar_walk_free(w);
	return rc;
}

/* ---- samples of an index ---- */

/* Parses "jpg 512 1234 000.jpg cls 2048 1 000.cls" and chooses the field that ranks first. */
static bool parse_idx_line(char *line, const struct webdataset_fields *f, struct sample *ret, const char **ret_name)
{
	int best = WEBDATASET_NO_RANK;
	char *rest;

	for (char *field = strtok_r(line, " ", &rest); field; field = strtok_r(NULL, " ", &rest)) {
		char *offset = strtok_r(NULL, " ", &rest), *bytes = strtok_r(NULL, " ", &rest);
		const char *name = strtok_r(NULL, " ", &rest);
		int rank = webdataset_rank(f->image, field);
		char *ends[2];

		if (!name || strlen(name) > WEBDATASET_NAME_MAX)
			return false;
		if (rank >= best)
			continue;
		best = rank;
		ret->offset = strtoull(offset, &ends[0], 10);
		ret->bytes = (uint32_t)strtoul(bytes, &ends[1], 10);
		*ret_name = name;
		if (*ends[0] || *ends[1])
			return false;
	}
	return best < WEBDATASET_NO_RANK;
}

bool webdataset_take_idx(struct samples *to, char *idx, const char *labels, uint32_t object,
			 const struct webdataset_fields *f)
{
	char *rest, *line = strtok_r(idx, "\n", &rest), *end;
	long long n = line && !strncmp(line, "v1.2 ", 5) ? strtoll(line + 5, NULL, 10) : -1;

	if (n < 0 || webdataset_rank(f->label, "cls") != 0)
		return false;
	for (; n-- > 0; labels = end) {
		struct sample one = { .object = object };
		const char *name = NULL;
		long label = strtol(labels, &end, 10);

		line = strtok_r(NULL, "\n", &rest);
		if (end == labels || label < 0 || label >= INT32_MAX || !line || !parse_idx_line(line, f, &one, &name))
			return false;
		one.label = (int32_t)label;
		samples_add(to, &one, name);
	}
	return !*labels && !strtok_r(NULL, "\n", &rest);
}
