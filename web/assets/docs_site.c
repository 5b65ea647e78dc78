/* SPDX-License-Identifier: Apache-2.0 */
/* docs_site.c: walks the folder of the site once and sorts its files by path for binary search. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "tracker/base/arena.h"
#include "tracker/base/file.h"
#include "tracker/base/hash.h"
#include "tracker/mem/mem.h"
#include "web/assets/asset.h"

enum { SITE_FILES_MAX = 10000, SITE_DEPTH_MAX = 16, SITE_UNPACK_BYTES = 65536 };

#define SITE_FILE_MAX ((size_t)64 << 20)

struct docs_site {
	struct arena *arena;
	struct docs_file *files;
	size_t count, cap;
	struct buf *contents; /* of each file, in the order of reading */
	size_t contents_cap;
};

static bool is_packed_name(const char *name)
{
	size_t n = strlen(name);

	return n > 3 && !strcmp(name + n - 3, ".gz");
}

/* Reads one file. NAME.gz gets the path NAME. */
static int add_site_file(struct docs_site *s, const char *path, const char *below, struct err *err)
{
	size_t index = s->count;
	struct docs_file f = { .gzip = is_packed_name(below) };
	struct buf content;
	int rc;

	if (index == SITE_FILES_MAX)
		return err_set(err, ERR_USAGE, "%s: more than %d files: expected the site that make docs builds", path,
			       SITE_FILES_MAX);
	mem_reserve(&s->contents, &s->contents_cap, index + 1);
	buf_init(&content, SITE_FILE_MAX);
	rc = file_load(&content, path, err);
	if (rc) {
		buf_done(&content);
		return rc;
	}
	s->contents[index] = content;
	f.path = arena_printf(s->arena, "%.*s", (int)(strlen(below) - (f.gzip ? 3 : 0)), below);
	f.etag = arena_printf(s->arena, "\"%016llx\"",
			      (unsigned long long)hash_fnv(HASH_FNV_BEGIN, content.data, content.len));
	f.bytes = content.data;
	f.n = content.len;
	f.mime = mime_type_of(f.path);
	mem_push(&s->files, &s->count, &s->cap, f);
	return 0;
}

/* Whether a folder's entry is read: not if it is hidden, or has a packed form next to it. */
static bool is_entry_wanted(const char *path, const char *name)
{
	char packed[PATH_MAX];

	if (*name == '.' || snprintf(packed, sizeof(packed), "%s.gz", path) >= (int)sizeof(packed))
		return false;
	return is_packed_name(name) || access(packed, R_OK);
}

static int add_site_folder(struct docs_site *s, const char *folder, const char *below, int depth, struct err *err);

static int add_site_entry(struct docs_site *s, const char *path, const char *below, int depth, struct err *err)
{
	struct stat st;

	if (lstat(path, &st))
		return 0; /* removed in between */
	if (S_ISDIR(st.st_mode))
		return depth < SITE_DEPTH_MAX ? add_site_folder(s, path, below, depth + 1, err) : 0;
	return S_ISREG(st.st_mode) ? add_site_file(s, path, below, err) : 0;
}

/* below: the folder's path below the site, "" for the site itself. */
static int add_site_folder(struct docs_site *s, const char *folder, const char *below, int depth, struct err *err)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	int rc = 0;

	if (!d)
		return err_set(err, ERR_USAGE, "%s: cannot be read", folder);
	while (!rc && (e = readdir(d))) {
		char path[PATH_MAX];
		const char *name;

		if (!file_join(path, sizeof(path), folder, e->d_name) || !is_entry_wanted(path, e->d_name))
			continue;
		name = arena_printf(s->arena, "%s%s%s", below, *below ? "/" : "", e->d_name);
		rc = add_site_entry(s, path, name, depth, err);
	}
	closedir(d);
	return rc;
}

static int compare_site_paths(const void *a, const void *b)
{
	return strcmp(((const struct docs_file *)a)->path, ((const struct docs_file *)b)->path);
}

int docs_site_load(struct docs_site **ret, const char *folder, struct err *err)
{
	struct docs_site *s = mem_zalloc(sizeof(*s));
	int rc;

	s->arena = arena_new();
	rc = add_site_folder(s, folder, "", 0, err);
	if (!rc) {
		qsort(s->files, s->count, sizeof(*s->files), compare_site_paths);
		if (!docs_site_find(s, "index.html"))
			rc = err_set(err, ERR_USAGE, "%s: has no index.html: expected the site that make docs builds",
				     folder);
	}
	if (rc)
		docs_site_free(s);
	else
		*ret = s;
	return rc;
}

void docs_site_free(struct docs_site *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->count; i++)
		buf_done(&s->contents[i]);
	free(s->contents);
	free(s->files);
	arena_free(s->arena);
	free(s);
}

const struct docs_file *docs_site_find(const struct docs_site *s, const char *path)
{
	struct docs_file key = { .path = path };

	return s->count ? bsearch(&key, s->files, s->count, sizeof(*s->files), compare_site_paths) : NULL;
}

int docs_site_unpack(const struct docs_file *f, struct buf *to)
{
	unsigned char piece[SITE_UNPACK_BYTES];
	z_stream z = { .next_in = (unsigned char *)(uintptr_t)f->bytes, .avail_in = (uInt)f->n };
	int rc = Z_OK;

	if (!f->gzip) {
		buf_add(to, f->bytes, f->n);
		return buf_failed(to) ? ERR_NOMEM : 0;
	}
	if (inflateInit2(&z, 16 + MAX_WBITS) != Z_OK)
		return ERR_NOMEM;
	while (rc == Z_OK) {
		z.next_out = piece;
		z.avail_out = sizeof(piece);
		rc = inflate(&z, Z_NO_FLUSH);
		buf_add(to, piece, sizeof(piece) - z.avail_out);
	}
	inflateEnd(&z);
	if (rc != Z_STREAM_END)
		return ERR_CORRUPT;
	return buf_failed(to) ? ERR_NOMEM : 0;
}

static bool is_site_folder(const char *folder)
{
	char index[PATH_MAX];

	return file_join(index, sizeof(index), folder, "index.html") && !access(index, R_OK);
}

bool docs_site_locate(char *ret, size_t n)
{
	static const char *const places[] = { "site", "../share/dptrack/docs" };
	char program[PATH_MAX], folder[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);

	for (size_t i = 0; len > 0 && i < sizeof(places) / sizeof(places[0]); i++) {
		program[len] = '\0';
		file_name_folder(program, folder, sizeof(folder));
		if (file_join(ret, n, folder, places[i]) && is_site_folder(ret))
			return true;
	}
	return snprintf(ret, n, "%s", DPTRACK_DOCS_DIR) < (int)n && is_site_folder(ret);
}

/* ---- asset ----
 * Finds an embedded file by binary search; the table is sorted by path. */

const struct asset *asset_find(const char *path)
{
	size_t low = 0, high = asset_count, mid;
	int order;

	while (low < high) {
		mid = low + (high - low) / 2;
		order = strcmp(path, asset_table[mid].path);
		if (!order)
			return &asset_table[mid];
		if (order < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
}
