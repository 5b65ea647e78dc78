/* SPDX-License-Identifier: Apache-2.0 */
/* embed_assets.c: build tool. Writes the table of web/assets/asset.h as C:
 *   embed OUT.c [DIR] [/address=FILE]...
 * Every file below DIR is served under its relative name; text is also kept compressed when that saves a tenth: by
 * gzip, and by brotli if the bundler left NAME.br next to NAME. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "tracker/base/hash.h"
#include "web/assets/asset.h"

enum { EMBED_FILES_MAX = 1000, EMBED_PATH_MAX = 1024 };

struct embed_file {
	char path[EMBED_PATH_MAX]; /* path in the URL */
	char name[EMBED_PATH_MAX]; /* path on disk */
};

struct embed_bytes {
	unsigned char *data;
	size_t len;
};

static void exit_with_error(const char *what, const char *name)
{
	fprintf(stderr, "embed: %s %s: %s\n", what, name, strerror(errno));
	exit(1);
}

/* The bundler puts a hash of at least eight letters and digits before the extension. */
static int has_hashed_name(const char *path)
{
	const char *dot = strrchr(path, '.'), *at = dot;
	int digits_or_caps = 0;

	while (at && at > path && isalnum((unsigned char)at[-1])) {
		at--;
		digits_or_caps += isdigit((unsigned char)*at) || isupper((unsigned char)*at);
	}
	return at && at > path && dot - at >= 8 && digits_or_caps >= 4 && (at[-1] == '-' || at[-1] == '.');
}

static bool is_brotli_name(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && !strcmp(dot, ".br");
}

static struct embed_bytes read_embed_file(const char *name)
{
	struct embed_bytes b = { 0 };
	struct stat st;
	FILE *f = fopen(name, "rb");

	if (!f || fstat(fileno(f), &st))
		exit_with_error("cannot open", name);
	b.len = (size_t)st.st_size;
	b.data = malloc(b.len + 1);
	if (!b.data || fread(b.data, 1, b.len, f) != b.len)
		exit_with_error("cannot read", name);
	fclose(f);
	return b;
}

static struct embed_bytes gzip_embed_file(const struct embed_bytes *raw)
{
	struct embed_bytes gz = { 0 };
	z_stream z = { 0 };

	if (deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK)
		exit_with_error("zlib", "deflateInit2");
	gz.len = deflateBound(&z, raw->len) + 32;
	gz.data = malloc(gz.len);
	if (!gz.data)
		exit_with_error("cannot compress", "file");
	z.next_in = raw->data;
	z.avail_in = (uInt)raw->len;
	z.next_out = gz.data;
	z.avail_out = (uInt)gz.len;
	if (deflate(&z, Z_FINISH) != Z_STREAM_END)
		exit_with_error("zlib", "deflate");
	gz.len -= z.avail_out;
	deflateEnd(&z);
	return gz;
}

/* Reads NAME.br; no bytes if there is no such file. */
static struct embed_bytes read_brotli_file(const char *name)
{
	char packed[EMBED_PATH_MAX + 4];

	snprintf(packed, sizeof(packed), "%s.br", name);
	return access(packed, F_OK) ? (struct embed_bytes){ 0 } : read_embed_file(packed);
}

struct embed_output {
	FILE *arrays, *table;
	size_t index; /* of the file */
};

/* Writes the bytes as an array, and its name and length to the table; a form with no bytes or more than most is left
 * out. */
static void write_embed_form(const struct embed_output *o, const char *kind, const struct embed_bytes *b, size_t most)
{
	FILE *out = o->arrays;
	size_t i;

	if (!b->data || b->len > most) {
		fprintf(o->table, ", { NULL, 0 }");
		return;
	}
	fprintf(o->table, ", { %s_%zu, %zu }", kind, o->index, b->len);
	fprintf(out, "static const unsigned char %s_%zu[] = {", kind, o->index);
	for (i = 0; i < b->len; i++)
		fprintf(out, "%s%u,", i % 24 ? "" : "\n", b->data[i]);
	fprintf(out, "%s};\n", b->len ? "\n" : "0");
}

static size_t add_embed_file(struct embed_file *files, size_t n, const char *path, const char *name)
{
	if (n == EMBED_FILES_MAX) {
		errno = E2BIG;
		exit_with_error("too many files at", name);
	}
	snprintf(files[n].path, sizeof(files[n].path), "%s", path);
	snprintf(files[n].name, sizeof(files[n].name), "%s", name);
	return n + 1;
}

static size_t add_embed_folder(struct embed_file *files, size_t n, const char *dir, const char *prefix)
{
	char name[EMBED_PATH_MAX], path[EMBED_PATH_MAX];
	DIR *d = opendir(dir);
	struct dirent *e;
	struct stat st;

	if (!d)
		exit_with_error("cannot open", dir);
	while ((e = readdir(d))) {
		if (e->d_name[0] == '.' || is_brotli_name(e->d_name))
			continue;
		if ((size_t)snprintf(name, sizeof(name), "%s/%s", dir, e->d_name) >= sizeof(name) ||
		    (size_t)snprintf(path, sizeof(path), "%s/%s", prefix, e->d_name) >= sizeof(path) || stat(name, &st))
			exit_with_error("cannot stat", e->d_name);
		n = S_ISDIR(st.st_mode) ? add_embed_folder(files, n, name, path) : add_embed_file(files, n, path, name);
	}
	closedir(d);
	return n;
}

static int compare_embed_paths(const void *a, const void *b)
{
	return strcmp(((const struct embed_file *)a)->path, ((const struct embed_file *)b)->path);
}

static uint64_t hash_embed_file(const struct embed_bytes *b)
{
	return hash_fnv(HASH_FNV_BEGIN, b->data, b->len);
}

static void write_embed_file(const struct embed_output *o, const struct embed_file *f)
{
	struct embed_bytes raw = read_embed_file(f->name), gzip = gzip_embed_file(&raw),
			   brotli = read_brotli_file(f->name);
	const size_t most = raw.len - raw.len / 10;

	fprintf(o->table, "\t{ \"%s\", \"%s\", \"\\\"%016llx\\\"\"", f->path, mime_type_of(f->path),
		(unsigned long long)hash_embed_file(&raw));
	write_embed_form(o, "raw", &raw, SIZE_MAX);
	write_embed_form(o, "gzip", &gzip, most);
	write_embed_form(o, "brotli", &brotli, most);
	fprintf(o->table, ", %s },\n", has_hashed_name(f->path) ? "true" : "false");
	free(raw.data);
	free(gzip.data);
	free(brotli.data);
}

int main(int argc, char **argv)
{
	static struct embed_file files[EMBED_FILES_MAX];
	char *table_text = NULL;
	size_t table_len = 0, n = 0, i;
	FILE *out, *table;
	int arg;

	if (argc < 3) {
		fprintf(stderr, "usage: embed OUT.c [DIR] [/address=FILE]...\n");
		return 2;
	}
	for (arg = 2; arg < argc; arg++) {
		char *eq = argv[arg][0] == '/' ? strchr(argv[arg], '=') : NULL;

		if (!eq) {
			n = add_embed_folder(files, n, argv[arg], "");
			continue;
		}
		*eq = '\0';
		n = add_embed_file(files, n, argv[arg], eq + 1);
	}
	qsort(files, n, sizeof(files[0]), compare_embed_paths);
	out = fopen(argv[1], "w");
	table = open_memstream(&table_text, &table_len);
	if (!out || !table)
		exit_with_error("cannot write", argv[1]);
	fprintf(out, "/* Generated by web/assets/embed_assets.c. */\n#include \"web/assets/asset.h\"\n");
	for (i = 0; i < n; i++)
		write_embed_file(&(struct embed_output){ out, table, i }, &files[i]);
	fclose(table);
	fprintf(out, "const struct asset asset_table[] = {\n%s};\nconst size_t asset_count = %zu;\n", table_text, n);
	free(table_text);
	if (fclose(out))
		exit_with_error("cannot write", argv[1]);
	return 0;
}
