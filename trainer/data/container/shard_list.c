/* shard_list.c: expands folders, braces and index files to addresses. */
#include "trainer/data/container/shard_list.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include "trainer/data/store/data_objects.h"

#define KIND "wids-shard-index-v1"
#define DIGITS_MAX 18
#define PART_ENDS "-_./" /* may follow a part's name, as may the end */
#define INDEX_BYTES_MAX ((size_t)256 << 20)
#define NOT_LISTED (-1)

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

static int grow_shard_list(struct shard_list *l)
{
	size_t cap = l->cap ? 2 * (size_t)l->cap : 64;
	char **address = realloc(l->address, cap * sizeof(*address));
	struct shard_sums *sums;

	if (!address)
		return ERR_NOMEM;
	l->address = address;
	sums = realloc(l->sums, cap * sizeof(*sums));
	if (!sums)
		return ERR_NOMEM;
	l->sums = sums;
	l->cap = (int)cap;
	return 0;
}

static int append_shard(struct shard_list *l, const char *address, struct err *err)
{
	if (l->n >= SHARD_LIST_MAX)
		return err_set(err, ERR_USAGE, "%.200s: more than %d shards", address, SHARD_LIST_MAX);
	if (l->n == l->cap && grow_shard_list(l))
		return err_set(err, ERR_NOMEM, "out of memory: the names of %d shards", l->n + 1);
	l->sums[l->n] = (struct shard_sums){ .n = 0 };
	l->address[l->n] = strdup(address);
	return l->address[l->n++] ? 0 : err_set(err, ERR_NOMEM, "out of memory: the names of %d shards", l->cap);
}

void shard_list_done(struct shard_list *l)
{
	const int n = l->n;
	char **address = shard_list_take(l);

	for (int i = 0; i < n; i++)
		free(address[i]);
	free(address);
}

char **shard_list_take(struct shard_list *l)
{
	char **address = l->address;

	for (int i = 0; i < l->n; i++) {
		free(l->sums[i].at);
		free(l->sums[i].labels);
		free(l->sums[i].version);
	}
	free(l->sums);
	*l = (struct shard_list){ .n = 0 };
	return address;
}

/* TensorFlow's names for shards: "train-00003-of-01024". */
static bool is_numbered(const char *name)
{
	const char *of = strstr(name, "-of-");
	size_t digits = of ? strspn(of + 4, "0123456789") : 0, before = 0;

	while (of && of - before > name && strchr("0123456789", of[-1 - (ptrdiff_t)before]))
		before++;
	return digits == 5 && before == 5 && !of[9];
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

static enum shard_part part_by_name(const char *name)
{
	static const char *const val[] = { "val", "valid", "validation", "test" };

	if (!strncmp(name, "train", 5) && strchr(PART_ENDS, name[5]))
		return SHARDS_TRAIN;
	for (size_t i = 0; i < sizeof(val) / sizeof(*val); i++)
		if (!strncmp(name, val[i], strlen(val[i])) && strchr(PART_ENDS, name[strlen(val[i])]))
			return SHARDS_VAL;
	return SHARDS_ALL;
}

/* Returns true if the shard belongs to the part. In a folder without shards named train-…, all shards are for
 * training. */
static bool belongs_to_part(enum shard_part part, const char *name, bool parted)
{
	return part == SHARDS_ALL || (parted ? part_by_name(name) == part : part == SHARDS_TRAIN);
}

static int read_shard_index(struct shard_list *l, const char *path, int listed, struct err *err);

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
	return accepts_shard_name(&c->shards, name) ? append_shard(&c->shards, name, err) : 0;
}

static int collect_listed_entry(void *user, const struct objects_entry *e, struct err *err)
{
	struct content *c = user;
	int before = c->shards.n, rc = collect_shard_name(c, e->name, err);
	struct shard_sums *sums;

	if (rc || c->shards.n == before || !*e->version)
		return rc;
	sums = &c->shards.sums[before];
	sums->listed_bytes = e->bytes;
	sums->version = strdup(e->version);
	return sums->version ? 0 : err_set(err, ERR_NOMEM, "out of memory: the names of %d shards", c->shards.n);
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
			rc = rc ? rc : append_shard(&c->shards, path, err);
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

	if (e->d_type == DT_REG ||
	    (part_by_name(e->d_name) == SHARDS_ALL && !accepts_shard_name(&c->shards, e->d_name)))
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

static void move_listed_version(struct shard_sums *to, struct shard_sums *from)
{
	to->listed_bytes = from->listed_bytes;
	to->version = from->version;
	from->version = NULL;
}

/* Adds the folder's shards that belong to the part, then reads the part's index file. */
static int add_folder_shards(struct shard_list *l, const char *folder, enum shard_part part, struct content *c,
			     struct err *err)
{
	char path[PATH_MAX];
	int before = l->n, rc = 0;
	bool parted = false;

	for (int i = 0; i < c->shards.n; i++)
		parted |= part_by_name(c->shards.address[i]) == SHARDS_TRAIN;
	for (int i = 0; !rc && i < c->shards.n; i++)
		if (belongs_to_part(part, c->shards.address[i], parted)) {
			rc = join_shard_path(path, folder, c->shards.address[i], err);
			rc = rc ? rc : append_shard(l, path, err);
			if (!rc)
				move_listed_version(&l->sums[l->n - 1], &c->shards.sums[i]);
		}
	if (!rc && l->n == before && part != SHARDS_VAL && !l->may_be_none)
		return err_set(err, ERR_USAGE,
			       "%.300s: no %s to %s", folder,
			       l->takes ? l->expects : "shards (*" SHARD_SUFFIX ", *.tfrecord, *-00000-of-00128, "
						       "*.parquet, *.arrow, data.mdb)",
			       part == SHARDS_TRAIN ? "train on" : "read");
	if (rc || l->takes || !c->index[part])
		return rc;
	rc = join_shard_path(path, folder, index_file_name(part), err);
	return rc ? rc : read_shard_index(l, path, before, err);
}

static int add_shard_folder(struct shard_list *l, const char *folder, enum shard_part part, struct err *err)
{
	struct content c = { .shards = { .takes = l->takes } };
	int rc = collect_folder(&c, folder, l->timeout_s, err);

	rc = rc ? rc : add_folder_shards(l, folder, part, &c, err);
	shard_list_done(&c.shards);
	return rc;
}

static void read_json_numbers(const json_t *from, const char *name, double ret[4])
{
	const json_t *list = json_object_get(from, name);

	for (size_t i = 0; i < 4 && i < json_array_size(list); i++)
		ret[i] = json_number_value(json_array_get(list, i));
}

static void read_index_facts(struct shard_list *l, const json_t *root)
{
	const json_t *ours = json_object_get(root, "dptrain");
	size_t classes = json_array_size(json_object_get(root, "classes")),
	       channels = json_array_size(json_object_get(ours, "mean"));

	l->facts = (struct shard_facts){ .classes = classes < INT_MAX ? (int)classes : 0,
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
static int read_shard_crcs(struct shard_sums *ret, const json_t *entry, struct err *err)
{
	const json_t *list = json_object_get(entry, "crc32c");
	size_t n = json_array_size(list);
	struct shard_sums s = { .n = n };
	char *end;

	if (!n)
		return 0;
	s.at = malloc(n * sizeof(*s.at));
	if (!s.at)
		return err_set(err, ERR_NOMEM, "out of memory: the checksums of a shard");
	for (size_t i = 0; i < n; i++) {
		const char *hex = json_string_value(json_array_get(list, i));

		s.at[i] = hex ? (uint32_t)strtoul(hex, &end, 16) : 0;
		if (!hex || !*hex || *end) {
			free(s.at);
			return 0;
		}
	}
	free(ret->at);
	ret->at = s.at;
	ret->n = s.n;
	return 0;
}

static int read_shard_facts(struct shard_sums *ret, const json_t *entry, struct err *err)
{
	const char *labels = json_string_value(json_object_get(entry, "labels"));
	json_int_t bytes = json_integer_value(json_object_get(entry, "filesize"));

	ret->bytes = bytes > 0 ? (uint64_t)bytes : 0;
	if (labels && !ret->labels && !(ret->labels = strdup(labels)))
		return err_set(err, ERR_NOMEM, "out of memory: the labels of a shard");
	return read_shard_crcs(ret, entry, err);
}

/* Merges a shard of an index. NOT_LISTED: appends it. Otherwise its folder was listed: searches it from *at on. The
 * list is sorted by name; where an index is not, some of its checksums are unused. */
static int merge_index_shard(struct shard_list *l, const char *index, const json_t *entry, int *at, struct err *err)
{
	const char *url = json_string_value(json_object_get(entry, "url"));
	char path[PATH_MAX];
	int rc = url ? resolve_shard_url(path, index, url, err)
		     : err_set(err, ERR_USAGE, "%.300s: a shard has no \"url\"", index),
	    i = *at;

	if (rc)
		return rc;
	if (*at == NOT_LISTED) {
		rc = append_shard(l, path, err);
		return rc ? rc : read_shard_facts(&l->sums[l->n - 1], entry, err);
	}
	while (i < l->n && strcmp(l->address[i], path) < 0)
		i++;
	*at = i;
	return i < l->n && !strcmp(l->address[i], path) ? read_shard_facts(&l->sums[i], entry, err) : 0;
}

/* Merges the shards of an index file. listed: number of the first shard of its folder's listing, or NOT_LISTED. */
static int read_shard_index(struct shard_list *l, const char *path, int listed, struct err *err)
{
	json_error_t where = { .text = "" };
	struct buf text;
	json_t *root;
	const json_t *list;
	const char *kind;
	int rc;

	buf_init(&text, INDEX_BYTES_MAX + 1);
	rc = objects_text(path, &(struct objects_opts){ .timeout_s = l->timeout_s }, INDEX_BYTES_MAX, &text, err);
	root = rc ? NULL : json_loadb(text.data ? text.data : "", text.len, JSON_REJECT_DUPLICATES, &where);
	buf_done(&text);
	if (rc)
		return rc;
	list = json_object_get(root, "shardlist");
	kind = json_string_value(json_object_get(root, "__kind__"));
	if (!root)
		rc = err_set(err, ERR_USAGE, "%.300s:%d: %.100s", path, where.line, where.text);
	else if (!kind || strcmp(kind, KIND) || !json_array_size(list))
		rc = err_set(err, ERR_USAGE,
			     "%.300s: is not an index of shards: expected __kind__ " KIND " and a shardlist", path);
	for (size_t i = 0; !rc && i < json_array_size(list); i++)
		rc = merge_index_shard(l, path, json_array_get(list, i), &listed, err);
	if (!rc)
		read_index_facts(l, root);
	json_decref(root);
	return rc;
}

int shard_list_check(const char *spec, struct err *err)
{
	const char *host = strstr(spec, "://");
	size_t n = host ? strcspn(host + 3, "/?#") : 0;

	if (!host || (!memchr(host + 3, '@', n) && !strchr(host, '?')))
		return 0;
	return err_set(err, ERR_USAGE,
		       "an address with a password or a query would be recorded with the run: put passwords into "
		       "~/.netrc, signed addresses into an index file of shards");
}

static int add_shard_spec(struct shard_list *l, const char *spec, enum shard_part part, struct err *err)
{
	if (is_shard_folder(spec))
		return add_shard_folder(l, spec, part, err);
	if (part == SHARDS_VAL) /* shards that are named one by one have no part */
		return 0;
	if (!l->takes && name_ends_in(spec, ".json"))
		return read_shard_index(l, spec, NOT_LISTED, err);
	if (!l->takes && (name_ends_in(spec, ".gz") || name_ends_in(spec, ".zst") || name_ends_in(spec, ".tgz")))
		return err_set(err, ERR_USAGE,
			       "%.300s: is compressed: decompress it first, because shards are read in place", spec);
	return append_shard(l, spec, err);
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

static bool is_shard_index(const char *path)
{
	json_t *root = name_ends_in(path, ".json") ? json_load_file(path, 0, NULL) : NULL;
	const char *kind = json_string_value(json_object_get(root, "__kind__"));
	bool found = kind && !strcmp(kind, KIND);

	json_decref(root);
	return found;
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
		       is_shard_index(spec);
	any = !collect_folder(&c, spec, 0, NULL) && c.shards.n;
	shard_list_done(&c.shards);
	return any;
}
