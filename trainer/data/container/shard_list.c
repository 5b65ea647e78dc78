/* SPDX-License-Identifier: Apache-2.0 */
/* shard_list.c: expands folders, braces and index files to addresses. */
#include "trainer/data/container/shard_list.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/mem/mem.h"
#include "trainer/data/store/data_objects.h"

#define DIGITS_MAX 18
#define PART_ENDS "-_./" /* may follow a part's name, as may the end */

static bool name_ends_in(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && !strcmp(text + n - m, end);
}

static bool is_shard_folder(const char *path)
{
	struct stat st;

	return objects_is_folder(path) || (!stat(path, &st) && S_ISDIR(st.st_mode));
}

/* A shard that is numbered among others: "train-00003-of-00128.parquet". */
struct numbered_shard {
	const char *name;
	size_t prefix; /* bytes in front of the number */
	int digits;
	long number, total;
};

/* Parses the number of a name, and its total; 0: none. The text after them may differ between shards of one group. */
static bool parse_shard_number(const char *address, struct numbered_shard *ret)
{
	const char *name = strrchr(address, '/') ? strrchr(address, '/') + 1 : address;
	const char *of = strstr(name, "-of-"), *end = of ? of : strrchr(name, '.'), *at;
	size_t digits = of ? strspn(of + 4, "0123456789") : 0;

	for (end = end ? end : name + strlen(name); !of && end > name && !isdigit((unsigned char)end[-1]);)
		end--;
	for (at = end; at > name && isdigit((unsigned char)at[-1]);)
		at--;
	if (end == at || end - at > 9 || (of && (size_t)(end - at) != digits))
		return false;
	*ret = (struct numbered_shard){ .name = name,
					.prefix = (size_t)(at - name),
					.digits = (int)(end - at),
					.number = strtol(at, NULL, 10),
					.total = of ? strtol(of + 4, NULL, 10) : 0 };
	return true;
}

/* TensorFlow's names for shards: "train-00003-of-01024". */
static bool is_numbered(const char *name)
{
	const char *of = strstr(name, "-of-");
	struct numbered_shard s;

	return of && parse_shard_number(name, &s) && s.digits == 5 && !of[9];
}

static bool is_records(const char *name)
{
	return name_ends_in(name, ".tfrecord") || name_ends_in(name, ".tfrecords") || is_numbered(name);
}

static bool is_lmdb(const char *name)
{
	return (name_ends_in(name, ".mdb") || name_ends_in(name, ".lmdb")) && strcmp(name, "lock.mdb");
}

static bool is_parquet(const char *name)
{
	return name_ends_in(name, ".parquet");
}

static bool is_arrow(const char *name)
{
	return name_ends_in(name, ".arrow") || name_ends_in(name, ".feather");
}

const char *shard_list_format(const char *name)
{
	return is_records(name)	  ? "tfrecord"
	       : is_lmdb(name)	  ? "lmdb"
	       : is_parquet(name) ? "parquet"
	       : is_arrow(name)	  ? "arrow"
				  : "tar";
}

static bool is_shard(const char *name)
{
	return name[0] != '.' && (name_ends_in(name, SHARD_SUFFIX) || is_records(name) || is_lmdb(name) ||
				  is_parquet(name) || is_arrow(name));
}

static bool accepts_shard_name(const struct shard_list *l, const char *name)
{
	return l->takes ? l->takes(name) : is_shard(name);
}

/* Names of splits. Of those for evaluation, the first that a folder has is used. */
static const char *const splits[] = { "train", "validation", "valid", "val", "test" };

enum { SPLIT_NAMES = sizeof(splits) / sizeof(*splits), NO_SPLIT = SPLIT_NAMES };

/* Returns the split that a name states: "train-0.tar", "val/0.tar"; "mnist-train.tfrecord-00000-of-00001", as
 * TensorFlow Datasets names files. NO_SPLIT: none. */
static int split_by_name(const char *name)
{
	const char *record = strstr(name, ".tfrecord");

	for (int i = 0; i < SPLIT_NAMES; i++) {
		size_t n = strlen(splits[i]);

		if (!strncmp(name, splits[i], n) && strchr(PART_ENDS, name[n]))
			return i;
		if (record && (size_t)(record - name) > n && !memcmp(record - n, splits[i], n) &&
		    record[-(ptrdiff_t)n - 1] == '-')
			return i;
	}
	return NO_SPLIT;
}

/* Which of a folder's shards are for training, and which for evaluation. */
struct folder_splits {
	int train;    /* 0, or NO_SPLIT where no shard is of the split train; -1: neither: all are for training */
	int evaluate; /* -1: none */
};

static struct folder_splits choose_splits(const struct shard_list *names)
{
	struct folder_splits s = { -1, -1 };
	bool has[SPLIT_NAMES + 1] = { false };

	for (int i = 0; i < names->n; i++)
		has[split_by_name(names->address[i])] = true;
	if (has[0] || has[NO_SPLIT])
		s.train = has[0] ? 0 : NO_SPLIT;
	for (int i = 1; i < SPLIT_NAMES && s.train >= 0 && s.evaluate < 0; i++)
		if (has[i])
			s.evaluate = i;
	return s;
}

static bool belongs_to_part(enum shard_part part, const char *name, const struct folder_splits *s)
{
	if (part == SHARDS_TRAIN)
		return s->train < 0 || split_by_name(name) == s->train;
	return part == SHARDS_ALL || split_by_name(name) == s->evaluate;
}

/* The shard names of a folder, local or remote, sorted; and which index files it has. */
struct content {
	struct shard_list shards; /* names */
	bool index[3];		  /* [part]: `dptrain shard` wrote an index file there */
};

static const char *index_file_name(enum shard_part part)
{
	return part == SHARDS_VAL ? "val.json" : "train.json";
}

static int collect_shard_name(struct content *c, const char *name, struct err *err)
{
	for (int part = SHARDS_TRAIN; part <= SHARDS_VAL; part++)
		c->index[part] |= !strcmp(name, index_file_name((enum shard_part)part));
	return accepts_shard_name(&c->shards, name) ? shard_list_append(&c->shards, name, err) : 0;
}

bool shard_list_describes(const char *name)
{
	static const char *const files[] = { "dataset_dict.json", "dataset_info.json", "state.json" };
	const char *slash = strrchr(name, '/');

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		if (!strcmp(slash ? slash + 1 : name, files[i]))
			return true;
	return false;
}

/* Counts a file of a remote folder that is no shard: index files are used. */
static void account_listed_file(struct data_account *a, const char *name)
{
	if (data_account_hides(name))
		data_account_hide(a, name);
	else if (name_ends_in(name, ".idx") || shard_list_describes(name) ||
		 !strcmp(name, index_file_name(SHARDS_TRAIN)) || !strcmp(name, index_file_name(SHARDS_VAL)))
		data_account_use(a, name);
	else
		data_account_leave_unknown(a, name);
}

static int collect_listed_entry(void *user, const struct objects_entry *e, struct err *err)
{
	struct content *c = user;
	int before = c->shards.n, rc = collect_shard_name(c, e->name, err);
	struct shard_sums *sums;

	if (!rc && c->shards.account && c->shards.n == before)
		account_listed_file(c->shards.account, e->name);
	if (rc || c->shards.n == before || !*e->version)
		return rc;
	sums = &c->shards.sums[before];
	sums->listed_bytes = e->bytes;
	sums->version = mem_strdup(e->version);
	return 0;
}

static int compare_shard_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int join_shard_path(char ret[PATH_MAX], const char *folder, const char *name, struct err *err)
{
	int n = snprintf(ret, PATH_MAX, "%s%s%s", folder, name_ends_in(folder, "/") ? "" : "/", name);

	return n < PATH_MAX ? 0 : err_set(err, ERR_USAGE, "%.300s: a shard's name is too long", folder);
}

/* Collects the shards of a subfolder named after a part or a database: train/data.mdb, val/000.tar. */
static int collect_subfolder(struct content *c, const char *folder, const char *name, struct err *err)
{
	char path[PATH_MAX];
	struct dirent *e;
	DIR *d;
	int rc = join_shard_path(path, folder, name, err);

	d = rc ? NULL : opendir(path);
	while (!rc && d && (e = readdir(d)))
		if (accepts_shard_name(&c->shards, e->d_name)) {
			rc = join_shard_path(path, name, e->d_name, err);
			rc = rc ? rc : shard_list_append(&c->shards, path, err);
		}
	if (d)
		closedir(d);
	return rc;
}

static int collect_dirent(struct content *c, const char *folder, const struct dirent *e, struct err *err)
{
	struct stat st;
	char path[PATH_MAX];
	int rc;

	if (e->d_type == DT_REG || (split_by_name(e->d_name) == NO_SPLIT && !accepts_shard_name(&c->shards, e->d_name)))
		return collect_shard_name(c, e->d_name, err);
	rc = join_shard_path(path, folder, e->d_name, err);
	if (rc)
		return rc;
	return !stat(path, &st) && S_ISDIR(st.st_mode) ? collect_subfolder(c, folder, e->d_name, err)
						       : collect_shard_name(c, e->d_name, err);
}

static int collect_folder(struct content *c, const char *folder, double timeout_s, struct err *err)
{
	struct dirent *e;
	DIR *d;
	int rc = 0;

	if (objects_is_folder(folder))
		return objects_list(folder, &(struct objects_lister){ false, timeout_s, collect_listed_entry, c }, err);
	d = opendir(folder);
	if (!d)
		return err_set(err, ERR_USAGE, "%.300s: %s", folder, strerror(errno));
	while (!rc && (e = readdir(d)))
		rc = collect_dirent(c, folder, e, err);
	closedir(d);
	if (c->shards.n)
		qsort(c->shards.address, (size_t)c->shards.n, sizeof(*c->shards.address), compare_shard_names);
	return rc;
}

static int compare_shard_numbers(const void *a, const void *b)
{
	const struct numbered_shard *x = a, *y = b;
	size_t n = x->prefix < y->prefix ? x->prefix : y->prefix;
	int order = memcmp(x->name, y->name, n);

	if (!order)
		order = (x->prefix > y->prefix) - (x->prefix < y->prefix);
	if (!order)
		order = (x->total > y->total) - (x->total < y->total);
	return order ? order : (x->number > y->number) - (x->number < y->number);
}

static bool is_same_shard_group(const struct numbered_shard *a, const struct numbered_shard *b)
{
	return a->prefix == b->prefix && a->total == b->total && !memcmp(a->name, b->name, a->prefix);
}

/* Returns the first number that a group of n shards, sorted, lacks; -1: none. Numbers begin at 0, or at 1 where one
 * equals the total. */
static long find_missing_shard(const struct numbered_shard *at, size_t n)
{
	const long total = at->total, begin = at[n - 1].number == total ? 1 : 0;
	long wanted = begin;

	for (size_t i = 0; i < n; i++) {
		if (at[i].number > wanted)
			return wanted;
		wanted = at[i].number + 1;
	}
	return wanted < total + begin ? wanted : -1;
}

static int refuse_missing_shard(const struct numbered_shard *s, long missing, const char *folder, struct err *err)
{
	return err_set(err, ERR_USAGE,
		       "%.200s: shard %0*ld of %0*ld is missing (%.*s%0*ld-of-%0*ld): restore it, or name the shards "
		       "to use, joined by ::",
		       folder, s->digits, missing, s->digits, s->total, (int)(s->prefix < 80 ? s->prefix : 80), s->name,
		       s->digits, missing, s->digits, s->total);
}

/* Names the first number that a sorted group lacks. Where more are missing than there are, they are no counters. */
static void describe_gap(char ret[SHARD_GAP_BYTES], const struct numbered_shard *at, size_t n, const char *folder)
{
	long missing = 0, first = 0;

	for (size_t i = n - 1; i > 0; i--) {
		missing += at[i].number > at[i - 1].number ? at[i].number - at[i - 1].number - 1 : 0;
		first = at[i].number > at[i - 1].number + 1 ? at[i - 1].number + 1 : first;
	}
	if (missing > 0 && missing < (long)n)
		snprintf(ret, SHARD_GAP_BYTES, "%.200s: %ld of the numbered shards missing, the first is %.*s%0*ld",
			 folder, missing, (int)(at->prefix < 80 ? at->prefix : 80), at->name, at->digits, first);
}

int shard_list_check_complete(char *const *address, int count, const char *folder, char *gap, struct err *err)
{
	struct numbered_shard *found = mem_array((size_t)count + 1, sizeof(*found));
	size_t n = 0;
	int rc = 0;

	for (int i = 0; i < count; i++)
		n += parse_shard_number(address[i], &found[n]);
	qsort(found, n, sizeof(*found), compare_shard_numbers);
	for (size_t i = 0, end; !rc && i < n; i = end) {
		long missing;

		for (end = i + 1; end < n && is_same_shard_group(&found[i], &found[end]);)
			end++;
		missing = found[i].total ? find_missing_shard(&found[i], end - i) : -1;
		if (!found[i].total && gap && !*gap)
			describe_gap(gap, &found[i], end - i, folder);
		rc = missing < 0 ? 0 : refuse_missing_shard(&found[i], missing, folder, err);
	}
	free(found);
	return rc;
}

/* Adds the folder's shards that belong to the part, then reads the part's index file. */
static int add_folder_shards(struct shard_list *l, const char *folder, enum shard_part part, struct content *c,
			     struct err *err)
{
	char path[PATH_MAX];
	const struct folder_splits splitting = choose_splits(&c->shards);
	int before = l->n, rc = 0;

	for (int i = 0; c->shards.account && part != SHARDS_ALL && i < c->shards.n; i++)
		if (!belongs_to_part(SHARDS_TRAIN, c->shards.address[i], &splitting) &&
		    !belongs_to_part(SHARDS_VAL, c->shards.address[i], &splitting))
			data_account_leave_file(c->shards.account, c->shards.address[i],
						"shards of a split that is not used");
	for (int i = 0; !rc && i < c->shards.n; i++)
		if (belongs_to_part(part, c->shards.address[i], &splitting)) {
			rc = join_shard_path(path, folder, c->shards.address[i], err);
			rc = rc ? rc : shard_list_append(l, path, err);
			if (!rc) {
				l->sums[l->n - 1].listed_bytes = c->shards.sums[i].listed_bytes;
				l->sums[l->n - 1].version = c->shards.sums[i].version;
				c->shards.sums[i].version = NULL; /* moved */
			}
		}
	if (!rc && l->n == before && part != SHARDS_VAL && !l->may_be_none)
		return err_set(err, ERR_USAGE, "%.300s: no %s to %s", folder,
			       l->takes ? l->expects
					: "shards (*" SHARD_SUFFIX ", *.tfrecord, *-00000-of-00128, "
					  "*.parquet, *.arrow, data.mdb)",
			       part == SHARDS_TRAIN ? "train on" : "read");
	if (!rc)
		rc = shard_list_check_complete(l->address + before, l->n - before, folder, l->gap, err);
	if (rc || l->takes || !c->index[part])
		return rc;
	rc = join_shard_path(path, folder, index_file_name(part), err);
	return rc ? rc : wids_read(l, path, before, err);
}

static int add_shard_folder(struct shard_list *l, const char *folder, enum shard_part part, struct err *err)
{
	struct content c = { .shards = { .takes = l->takes,
					 .account = objects_is_folder(folder) ? l->account : NULL } };
	int rc = collect_folder(&c, folder, l->timeout_s, err);

	rc = rc ? rc : add_folder_shards(l, folder, part, &c, err);
	shard_list_done(&c.shards);
	return rc;
}

int shard_list_check(const char *spec, struct err *err)
{
	const char *host = strstr(spec, "://");
	size_t n = host ? strcspn(host + 3, "/?#") : 0;

	if (!host || (!memchr(host + 3, '@', n) && !strchr(host, '?')))
		return 0;
	return err_set(err, ERR_USAGE,
		       "a URL with a password or a query would be recorded with the run: put passwords into "
		       "~/.netrc, and signed URLs into an index file of shards");
}

static int add_shard_spec(struct shard_list *l, const char *spec, enum shard_part part, struct err *err)
{
	if (is_shard_folder(spec))
		return add_shard_folder(l, spec, part, err);
	if (part == SHARDS_VAL) /* shards that are named one by one have no part */
		return 0;
	if (!l->takes && name_ends_in(spec, ".json"))
		return wids_read(l, spec, WIDS_NOT_LISTED, err);
	if (!l->takes && (name_ends_in(spec, ".gz") || name_ends_in(spec, ".zst") || name_ends_in(spec, ".tgz")))
		return err_set(err, ERR_USAGE,
			       "%.300s: is compressed: decompress it first, because shards are read in place", spec);
	return shard_list_append(l, spec, err);
}

/* Parses a range "000..146" of n bytes: its bounds, and the minimum number of digits. */
static bool parse_brace_range(const char *text, size_t n, uint64_t ret[2], int *ret_digits)
{
	size_t first = strspn(text, "0123456789"), second;

	if (!first || first > DIGITS_MAX || strncmp(text + first, "..", 2))
		return false;
	second = strspn(text + first + 2, "0123456789");
	if (!second || second > DIGITS_MAX || first + 2 + second != n)
		return false;
	ret[0] = strtoull(text, NULL, 10);
	ret[1] = strtoull(text + first + 2, NULL, 10);
	*ret_digits = text[0] == '0' || text[first + 2] == '0' ? (int)first : 1;
	return true;
}

static int expand_braces(struct shard_list *l, const char *spec, enum shard_part part, struct err *err);

/* Expands one choice: the text in front of the braces, the choice, and the text after them. */
static int expand_brace_choice(struct shard_list *l, const char *spec, const char *choice, enum shard_part part,
			       struct err *err)
{
	const char *open = strchr(spec, '{');
	char text[PATH_MAX];

	if (snprintf(text, sizeof(text), "%.*s%s%s", (int)(open - spec), spec, choice, strchr(open, '}') + 1) >=
	    (int)sizeof(text))
		return err_set(err, ERR_USAGE, "%.300s: is too long", spec);
	return expand_braces(l, text, part, err);
}

static int expand_brace_range(struct shard_list *l, const char *spec, const uint64_t ends[2], int digits,
			      struct err *err)
{
	char choice[32];
	int rc = 0;

	if (ends[0] > ends[1] || ends[1] - ends[0] >= SHARD_LIST_MAX)
		return err_set(err, ERR_USAGE, "%.300s: a range must ascend and cover at most %d shards", spec,
			       SHARD_LIST_MAX);
	for (uint64_t i = ends[0]; !rc && i <= ends[1]; i++) {
		snprintf(choice, sizeof(choice), "%0*llu", digits, (unsigned long long)i);
		rc = expand_brace_choice(l, spec, choice, SHARDS_ALL, err);
	}
	return rc;
}

static int expand_braces(struct shard_list *l, const char *spec, enum shard_part part, struct err *err)
{
	const char *open = strchr(spec, '{'), *close = open ? strchr(open, '}') : NULL;
	char choice[PATH_MAX];
	uint64_t ends[2];
	int digits, rc = 0;

	if (!open)
		return add_shard_spec(l, spec, part, err);
	if (!close)
		return err_set(err, ERR_USAGE, "%.300s: a brace is not closed", spec);
	if (parse_brace_range(open + 1, (size_t)(close - open - 1), ends, &digits))
		return expand_brace_range(l, spec, ends, digits, err);
	for (const char *at = open + 1; !rc && at <= close; at += strcspn(at, ",}") + 1) {
		snprintf(choice, sizeof(choice), "%.*s", (int)strcspn(at, ",}"), at);
		rc = expand_brace_choice(l, spec, choice, part, err);
	}
	return rc;
}

int shard_list_add(struct shard_list *l, const char *spec, enum shard_part part, struct err *err)
{
	int rc = 0;

	rc = shard_list_check(spec, err);
	while (!rc && *spec) {
		const char *end = strstr(spec, "::");
		size_t n = end ? (size_t)(end - spec) : strlen(spec);
		char one[PATH_MAX];

		if (n >= sizeof(one))
			return err_set(err, ERR_USAGE, "%.300s: is too long", spec);
		memcpy(one, spec, n);
		one[n] = '\0';
		if (n)
			rc = expand_braces(l, one, part, err);
		spec += end ? n + 2 : n;
	}
	return rc;
}

bool shard_list_probe(const char *spec)
{
	struct content c = { .index = { false } };
	bool any;

	if (strstr(spec, "::") || strchr(spec, '{') || strstr(spec, "://"))
		return true;
	if (!is_shard_folder(spec))
		return is_shard(strrchr(spec, '/') ? strrchr(spec, '/') + 1 : spec) ||
		       name_ends_in(spec, SHARD_SUFFIX ".gz") || name_ends_in(spec, SHARD_SUFFIX ".zst") ||
		       wids_probe(spec);
	any = !collect_folder(&c, spec, 0, NULL) && c.shards.n;
	shard_list_done(&c.shards);
	return any;
}
