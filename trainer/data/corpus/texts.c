/* SPDX-License-Identifier: Apache-2.0 */
/* texts.c: finds the files of a corpus and their splits. */
#include "trainer/data/corpus/texts.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tracker/base/sha256.h"
#include "tracker/mem/mem.h"
#include "trainer/data/container/shard_list.h"
#include "trainer/data/store/data_objects.h"

static const struct {
	const char *ending;
	enum text_kind kind;
} kinds[] = { { ".txt", TEXT_PLAIN },
	      { ".jsonl", TEXT_LINES },
	      { ".ndjson", TEXT_LINES },
	      { ".parquet", TEXT_TABLE },
	      { ".json", TEXT_ARRAY } };

static const char *const packings[] = { [TEXT_GZIP] = ".gz", [TEXT_ZSTD] = ".zst" };

static bool has_text_ending(const char *text, size_t n, const char *end)
{
	size_t m = strlen(end);

	return n > m && !strncasecmp(text + n - m, end, m);
}

enum text_kind texts_kind(const char *name, enum text_packing *ret)
{
	size_t n = strlen(name);

	*ret = TEXT_UNPACKED;
	for (int p = TEXT_GZIP; p <= TEXT_ZSTD; p++)
		if (has_text_ending(name, n, packings[p])) {
			*ret = (enum text_packing)p;
			n -= strlen(packings[p]);
		}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (has_text_ending(name, n, kinds[i].ending) && (kinds[i].kind != TEXT_TABLE || *ret == TEXT_UNPACKED))
			return kinds[i].kind;
	return TEXT_NONE;
}

static bool takes_text(const char *name, bool tables)
{
	enum text_packing packing;
	enum text_kind kind = texts_kind(name, &packing);

	return kind == TEXT_PLAIN || kind == TEXT_LINES || (tables && kind == TEXT_TABLE);
}

static bool is_text_or_table(const char *name)
{
	return takes_text(name, true);
}

static bool holds_records(const char *name)
{
	enum text_packing packing;
	enum text_kind kind = texts_kind(name, &packing);

	return kind == TEXT_LINES || kind == TEXT_ARRAY || kind == TEXT_TABLE;
}

/* ---- splits ---- */

enum text_part { PART_TRAIN, PART_VAL, PART_TEST };

/* Returns the part that a file or a folder is named after. */
static enum text_part part_of_name(const char *name)
{
	static const struct {
		const char *word;
		enum text_part part;
	} words[] = { { "val", PART_VAL }, { "valid", PART_VAL }, { "validation", PART_VAL }, { "test", PART_TEST } };

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		size_t n = strlen(words[i].word);

		if (!strncmp(name, words[i].word, n) && !isalpha((unsigned char)name[n]))
			return words[i].part;
	}
	return PART_TRAIN;
}

/* Returns the part of a file: "val-0.txt" and "a/val/0.txt" are for validation. */
static enum text_part part_of_file(const struct text_file *f)
{
	const char *at = f->name + f->below;
	enum text_part part = PART_TRAIN;

	for (; at && part == PART_TRAIN; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
		part = part_of_name(at);
	return part;
}

/* Sets the splits. Drops the files of "test" if there are some of "val". Without training files all are for
 * training. */
static void split_texts(struct texts *t)
{
	int n[3] = { 0 }, kept = 0;

	for (int i = 0; i < t->n; i++)
		n[part_of_file(&t->file[i])]++;
	t->has_val = n[PART_TRAIN] && n[PART_VAL] + n[PART_TEST];
	for (int i = 0; i < t->n; i++) {
		struct text_file f = t->file[i];
		enum text_part part = part_of_file(&f);

		if (t->has_val && n[PART_VAL] && part == PART_TEST) {
			data_account_leave_file(&t->account, f.name + f.below,
						"test is not used, because there is a val");
			free(f.name);
			continue;
		}
		f.val = t->has_val && part != PART_TRAIN;
		data_account_use(&t->account, f.name);
		t->file[kept++] = f;
	}
	t->n = kept;
}

/* ---- files ---- */

struct text_search {
	struct texts *t;
	size_t cap;
	bool tables, records, incomplete;
	double timeout_s;
	const char *folder;
};

static void add_text_file(struct text_search *s, const char *folder, const char *name)
{
	const size_t n = strlen(folder);
	char *address = mem_printf("%s%s%s", folder, n && folder[n - 1] != '/' ? "/" : "", name);

	mem_push(&s->t->file, &s->t->n, &s->cap,
		 (struct text_file){ .name = address, .below = strlen(address) - strlen(name) });
}

static enum data_account_fate collect_local_text(void *user, const char *name, char why[DATA_ACCOUNT_TEXT_BYTES])
{
	struct text_search *s = user;

	if (name[strlen(name) - 1] == '/')
		return DATA_ACCOUNT_LEFT;
	if (s->records ? !holds_records(name) : !takes_text(name, s->tables)) {
		if (!s->records && takes_text(name, true))
			snprintf(why, DATA_ACCOUNT_TEXT_BYTES, "a table, which only dptrain tokenize reads");
		return DATA_ACCOUNT_LEFT;
	}
	add_text_file(s, s->folder, name);
	return DATA_ACCOUNT_COUNTED;
}

static int collect_listed_text(void *user, const struct objects_entry *e, struct err *err)
{
	struct text_search *s = user;

	(void)err;
	if (data_account_hides(e->name))
		s->t->account.hidden++;
	else if (!takes_text(e->name, s->tables))
		data_account_leave_unknown(&s->t->account, e->name);
	else
		add_text_file(s, s->folder, e->name);
	return 0;
}

static int compare_text_files(const void *a, const void *b)
{
	const struct text_file *x = a, *y = b;

	return strcmp(x->name + x->below, y->name + y->below);
}

/* Returns the offset of the last folder's name in an address, or of the file's name if there is no folder. */
static size_t last_folder_offset(const char *address)
{
	const char *slash = strrchr(address, '/'), *at = slash ? slash : address;

	while (at > address && at[-1] != '/')
		at--;
	return (size_t)(at - address);
}

/* Adds files that are named one by one. The folder of each counts for its split, too. */
static int add_named_texts(struct text_search *s, const char *spec, struct err *err)
{
	struct shard_list l = { .takes = s->records ? holds_records : is_text_or_table,
				.expects = TEXTS_EXPECTED " or table (*.parquet)" };
	int rc = shard_list_add(&l, spec, SHARDS_ALL, err);

	for (int i = 0; !rc && i < l.n; i++) {
		if (!l.takes(l.address[i]))
			rc = err_set(err, ERR_USAGE, "%.300s: is not a " TEXTS_EXPECTED " or table (*.parquet)",
				     l.address[i]);
		add_text_file(s, "", l.address[i]);
		s->t->file[s->t->n - 1].below = last_folder_offset(l.address[i]);
	}
	shard_list_done(&l);
	return rc;
}

/* Refuses numbered files that are not complete, folder by folder; the files are sorted. */
static int check_numbered_texts(const struct texts *t, int from, const char *folder, struct err *err)
{
	char **address = mem_array((size_t)(t->n - from), sizeof(*address));
	int rc = 0;

	for (int i = from, n = 0; !rc && i < t->n; i++) {
		const char *next = i + 1 < t->n ? t->file[i + 1].name : "", *slash = strrchr(next, '/');
		const size_t above = slash ? (size_t)(slash - next) + 1 : 0;

		address[n++] = t->file[i].name;
		if (above && !strncmp(next, t->file[i].name, above) && !strchr(t->file[i].name + above, '/'))
			continue;
		rc = shard_list_check_complete(address, n, folder, NULL, err);
		n = 0;
	}
	free(address);
	return rc;
}

/* Adds the files of a local or remote folder, or files named one by one. */
static int add_texts(struct text_search *s, const char *spec, struct err *err)
{
	const int before = s->t->n;
	struct stat st;
	int rc = 0;

	s->folder = spec;
	if (objects_is_folder(spec))
		rc = objects_list(spec, &(struct objects_lister){ true, s->timeout_s, collect_listed_text, s }, err);
	else if (!stat(spec, &st) && S_ISDIR(st.st_mode))
		data_account_walk(&s->t->account, spec, &(struct data_account_rule){ collect_local_text, s });
	else
		return add_named_texts(s, spec, err);
	if (!rc && s->t->n == before)
		rc = err_set(err, ERR_USAGE, "%.300s: no %s%s to read", spec, TEXTS_EXPECTED,
			     s->tables ? " or table (*.parquet)" : "");
	if (s->t->n > before)
		qsort(s->t->file + before, (size_t)(s->t->n - before), sizeof(*s->t->file), compare_text_files);
	return rc || s->incomplete ? rc : check_numbered_texts(s->t, before, spec, err);
}

int texts_find(struct texts *ret, const char *spec, const struct texts_opts *o, struct err *err)
{
	struct text_search s = {
		.t = ret,
		.tables = o->tables,
		.records = o->records,
		.incomplete = o->incomplete,
		.timeout_s = o->timeout_s,
	};
	int rc = shard_list_check(spec, err);

	*ret = (struct texts){ .n = 0 };
	for (const char *at = spec, *end; !rc && at; at = end ? end + 2 : NULL) {
		char *one;

		end = strstr(at, "::");
		one = mem_strndup(at, end ? (size_t)(end - at) : strlen(at));
		rc = *one ? add_texts(&s, one, err) : 0;
		free(one);
	}
	if (rc)
		texts_done(ret);
	else
		split_texts(ret);
	return rc;
}

int texts_key(const struct texts *t, struct buf *about, char ret[17], struct err *err)
{
	char hex[65];
	int rc = 0;

	for (int i = 0; !rc && i < t->n; i++) {
		struct stat st;

		if (stat(t->file[i].name, &st))
			rc = err_set(err, ERR_USAGE, "%.300s: %s", t->file[i].name, strerror(errno));
		else
			buf_addf(about, "\n/%s %lld %lld.%09ld", t->file[i].name + t->file[i].below,
				 (long long)st.st_size, (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	}
	sha256_hex(about->data, about->len, hex);
	snprintf(ret, 17, "%.16s", hex);
	return rc;
}

void texts_done(struct texts *t)
{
	for (int i = 0; i < t->n; i++)
		free(t->file[i].name);
	free(t->file);
	*t = (struct texts){ .n = 0 };
}
