/* texts.c: finds the files of a corpus and their splits. */
#include "trainer/data/corpus/texts.h"

#include <stdlib.h>
#include <string.h>

#include "trainer/data/container/shard_list.h"

static const struct {
	const char *ending;
	enum text_kind kind;
} kinds[] = { { ".txt", TEXT_PLAIN },	{ ".jsonl", TEXT_LINES }, { ".ndjson", TEXT_LINES },
	      { ".parquet", TEXT_TABLE } };

static const char *const packings[] = { [TEXT_GZIP] = ".gz", [TEXT_ZSTD] = ".zst" };

static bool has_text_ending(const char *text, size_t n, const char *end)
{
	size_t m = strlen(end);

	return n > m && !memcmp(text + n - m, end, m);
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

static bool is_text(const char *name)
{
	enum text_packing packing;
	enum text_kind kind = texts_kind(name, &packing);

	return name[0] != '.' && kind != TEXT_NONE && kind != TEXT_TABLE;
}

static bool is_text_or_table(const char *name)
{
	enum text_packing packing;

	return name[0] != '.' && texts_kind(name, &packing) != TEXT_NONE;
}

static bool begins_as_val(const char *name)
{
	return !strncmp(name, "val", 3) || !strncmp(name, "test", 4);
}

/* Matches "val-0.txt" and "a/val/0.txt". */
bool texts_in_val(const struct texts *t, int i)
{
	const char *path = t->name[i], *slash = strrchr(path, '/'), *folder = slash;

	if (t->n < 2)
		return false;
	while (folder && folder > path && folder[-1] != '/')
		folder--;
	return begins_as_val(slash ? slash + 1 : path) || (folder && begins_as_val(folder));
}

int texts_find(struct texts *ret, const char *spec, bool tables, struct err *err)
{
	struct shard_list l = { .takes = tables ? is_text_or_table : is_text,
				.expects = tables ? TEXTS_EXPECTED " or table (*.parquet)" : TEXTS_EXPECTED };
	int n_val = 0, rc = shard_list_add(&l, spec, SHARDS_ALL, err);
	enum text_packing packing;
	struct texts t = { .n = 0 };

	for (int i = 0; !rc && i < l.n; i++)
		if (texts_kind(l.address[i], &packing) == TEXT_NONE)
			rc = err_set(err, ERR_USAGE, "%.300s: is not a " TEXTS_EXPECTED " or table (*.parquet)",
				     l.address[i]);
	if (rc) {
		shard_list_done(&l);
		return rc;
	}
	t.n = l.n;
	t.name = shard_list_take(&l);
	for (int i = 0; i < t.n; i++)
		n_val += texts_in_val(&t, i);
	t.has_val = n_val > 0 && n_val < t.n;
	*ret = t;
	return 0;
}

void texts_done(struct texts *t)
{
	for (int i = 0; i < t->n; i++)
		free(t->name[i]);
	free(t->name);
	*t = (struct texts){ .n = 0 };
}
