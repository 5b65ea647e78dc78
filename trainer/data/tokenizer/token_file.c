/* SPDX-License-Identifier: Apache-2.0 */
/* token_file.c: reads and writes flat token files, and joins the files of a split. */
#include "trainer/data/tokenizer/token_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracker/base/crc32c.h"
#include "tracker/base/round.h"
#include "tracker/mem/mem.h"
#include "trainer/data/tokenizer/foreign_tokens.h"

#define MAGIC "DPTOKENS"
#define VERSION 1
#define HEADER_BYTES 128
#define NARROW_VOCAB 65536 /* largest vocabulary of two-byte tokens */
#define SAMPLES 64
#define ENDS_MAGIC "DPENDING"
#define ENDS_HEADER 24
#define SAMPLE_BYTES ((size_t)16384)

static uint64_t get_le(const unsigned char *p, int n)
{
	uint64_t v = 0;

	for (int i = n - 1; i >= 0; i--)
		v = v << 8 | p[i];
	return v;
}

static void put_le(unsigned char *p, int n, uint64_t v)
{
	for (int i = 0; i < n; i++, v >>= 8)
		p[i] = (unsigned char)v;
}

/* Checks the header and fills *f from it. */
static int read_token_header(struct token_file *f, const char *path, struct err *err)
{
	const unsigned char *h = f->map.bytes;
	uint64_t vocab, count, width;

	if (f->map.n < HEADER_BYTES)
		return err_set(err, ERR_USAGE, "%.300s: is not a token file: shorter than its header of %d bytes", path,
			       HEADER_BYTES);
	vocab = get_le(h + 16, 8);
	count = get_le(h + 24, 8);
	width = get_le(h + 12, 4);
	if (memcmp(h, MAGIC, 8))
		return err_set(err, ERR_USAGE, "%.300s: is not a token file: it does not begin with %s", path, MAGIC);
	if (get_le(h + 8, 4) != VERSION)
		return err_set(err, ERR_USAGE, "%.300s: has version %u: this program reads version %d", path,
			       (unsigned)get_le(h + 8, 4), VERSION);
	if ((width != 2 && width != 4) || vocab < 1 || vocab > INT32_MAX || h[HEADER_BYTES - 1])
		return err_set(err, ERR_USAGE, "%.300s: damaged header: tokens of %u bytes, vocabulary of %llu", path,
			       (unsigned)width, (unsigned long long)vocab);
	if (count > (f->map.n - HEADER_BYTES) / width)
		return err_set(err, ERR_USAGE,
			       "%.300s: has %zu bytes of tokens: its header states %llu tokens of %u bytes", path,
			       f->map.n - HEADER_BYTES, (unsigned long long)count, (unsigned)width);
	f->width = (int)width;
	f->vocab = (int64_t)vocab;
	f->count = (int64_t)count;
	f->tokens = h + HEADER_BYTES;
	memcpy(f->tokenizer, h + 32, TOKEN_FILE_NAME_BYTES);
	return 0;
}

/* Older files have no document ends; truncated ones lost them. Both have documents = 0. */
static void read_document_ends(struct token_file *f)
{
	size_t at = round_up_bytes(HEADER_BYTES + (size_t)f->count * (size_t)f->width, 8);
	const unsigned char *h = f->map.bytes + at;
	int64_t separator;
	uint64_t n;

	f->separator = -1;
	if (at > f->map.n || f->map.n - at < ENDS_HEADER || memcmp(h, ENDS_MAGIC, 8))
		return;
	separator = (int64_t)get_le(h + 8, 8);
	n = get_le(h + 16, 8);
	if (n > (f->map.n - at - ENDS_HEADER) / 8)
		return;
	f->separator = separator >= 0 && separator < f->vocab ? (int32_t)separator : -1;
	f->documents = (int64_t)n;
	f->ends = h + ENDS_HEADER;
}

/* Returns the token offset where document i ends: above the previous one's, at most count; -1: damaged file. */
static int64_t find_document_end(const struct token_file *f, int64_t i)
{
	uint64_t end = get_le(f->ends + 8 * i, 8), before = i ? get_le(f->ends + 8 * (i - 1), 8) : 0;

	return end > before && end <= (uint64_t)f->count ? (int64_t)end : -1;
}

/* ERR_USAGE, in one line: the file is missing, shorter than its header states, or not a token file. */
static int open_token_file(struct token_file *ret, const char *path, struct err *err)
{
	struct token_file f = { .count = 0 };
	int rc = file_map_open(&f.map, path, err);

	if (!rc)
		rc = file_refuse_pointer(path, f.map.bytes, f.map.n, err);
	if (!rc && foreign_tokens_parse(&f, path)) {
		*ret = f;
		return 0;
	}
	if (!rc)
		rc = read_token_header(&f, path, err);
	if (rc) {
		file_map_close(&f.map);
		return rc;
	}
	read_document_ends(&f);
	*ret = f;
	return 0;
}

/* Reads tokens [first, first + n); the caller keeps the range within count. */
static void read_file_tokens(const struct token_file *f, int64_t first, int64_t n, int32_t *ret)
{
	const unsigned char *p = f->tokens + first * f->width;

	for (int64_t i = 0; i < n; i++, p += f->width)
		ret[i] = f->width == 2 ? p[0] | p[1] << 8 : (int32_t)get_le(p, 4);
}

/* Checksum of the header, the ends, and 64 samples between them: identifies a file of any size fast. */
static uint32_t sum_token_file(const struct token_file *f)
{
	const unsigned char *bytes = f->map.bytes;
	size_t n = f->map.n, step = n / SAMPLES;
	uint32_t sum = crc32c(0, bytes, n < HEADER_BYTES ? n : HEADER_BYTES);

	if (step <= SAMPLE_BYTES)
		return crc32c(sum, bytes, n);
	for (size_t i = 0; i < SAMPLES; i++)
		sum = crc32c(sum, bytes + i * step, SAMPLE_BYTES);
	return crc32c(sum, bytes + n - SAMPLE_BYTES, SAMPLE_BYTES);
}

struct token_writer {
	char path[4000];
	struct file_whole whole;
	FILE *file; /* stream on a copy of whole's descriptor; NULL: committed */
	unsigned char header[HEADER_BYTES];
	int width;
	int64_t count, vocab;
	FILE *ends; /* document ends in their final encoding; an unnamed file */
	int64_t documents, last_end;
	int32_t separator;
};

static int fail_token_write(const struct token_writer *w, struct err *err)
{
	return err_set_errno(err, errno, "cannot write %.300s", w->path);
}

/* Opens a stream on a descriptor, or closes it. NULL: fd < 0, or out of memory. */
static FILE *open_stdio_file(int fd)
{
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w+");

	if (fd >= 0 && !f)
		close(fd);
	return f;
}

int token_writer_open(struct token_writer **ret, const struct token_writer_opts *o, struct err *err)
{
	struct token_writer *w = mem_zalloc(sizeof(*w));
	char part[FILE_WHOLE_PART], folder[sizeof(w->path)];

	w->vocab = o->vocab;
	w->separator = o->separator;
	w->width = o->vocab <= NARROW_VOCAB ? 2 : 4;
	w->whole.fd = -1;
	snprintf(w->path, sizeof(w->path), "%s", o->path);
	snprintf(part, sizeof(part), "%s.%ld", w->path, (long)getpid());
	memcpy(w->header, MAGIC, 8);
	put_le(w->header + 8, 4, VERSION);
	put_le(w->header + 12, 4, (uint64_t)w->width);
	put_le(w->header + 16, 8, (uint64_t)o->vocab);
	snprintf((char *)w->header + 32, TOKEN_FILE_NAME_BYTES, "%s", o->tokenizer);
	if (!file_whole_open(&w->whole, part))
		w->file = open_stdio_file(fcntl(w->whole.fd, F_DUPFD_CLOEXEC, 0));
	file_name_folder(w->path, folder, sizeof(folder)); /* there is space for the tokens, and for their ends */
	w->ends = open_stdio_file(file_nameless(folder));
	if (!w->file || !w->ends || fwrite(w->header, 1, HEADER_BYTES, w->file) != HEADER_BYTES) {
		int rc = fail_token_write(w, err);

		token_writer_close(w);
		return rc;
	}
	*ret = w;
	return 0;
}

int token_writer_add(struct token_writer *w, const int32_t *tokens, size_t n, struct err *err)
{
	unsigned char bytes[4096 * 4];

	for (size_t at = 0; at < n; at += 4096) {
		size_t k = n - at < 4096 ? n - at : 4096;

		for (size_t i = 0; i < k; i++)
			put_le(bytes + i * (size_t)w->width, w->width, (uint32_t)tokens[at + i]);
		if (fwrite(bytes, (size_t)w->width, k, w->file) != k)
			return fail_token_write(w, err);
	}
	w->count += (int64_t)n;
	return 0;
}

int token_writer_end(struct token_writer *w, struct err *err)
{
	unsigned char bytes[8];

	if (w->count == w->last_end)
		return 0;
	put_le(bytes, 8, (uint64_t)w->count);
	if (fwrite(bytes, 1, 8, w->ends) != 8)
		return fail_token_write(w, err);
	w->last_end = w->count;
	w->documents++;
	return 0;
}

int64_t token_writer_documents(const struct token_writer *w)
{
	return w->documents;
}

/* Appends the document ends after the tokens. False: sets errno. */
static bool append_document_ends(struct token_writer *w)
{
	unsigned char head[8 + ENDS_HEADER] = { 0 }, piece[8192];
	size_t tokens = HEADER_BYTES + (size_t)w->count * (size_t)w->width, gap = round_up_bytes(tokens, 8) - tokens, n;

	memcpy(head + gap, ENDS_MAGIC, 8);
	put_le(head + gap + 8, 8, (uint64_t)(int64_t)w->separator);
	put_le(head + gap + 16, 8, (uint64_t)w->documents);
	if (fwrite(head, 1, gap + ENDS_HEADER, w->file) != gap + ENDS_HEADER || fseek(w->ends, 0, SEEK_SET))
		return false;
	while ((n = fread(piece, 1, sizeof(piece), w->ends)) > 0)
		if (fwrite(piece, 1, n, w->file) != n)
			return false;
	return !ferror(w->ends);
}

int64_t token_writer_count(const struct token_writer *w)
{
	return w->count;
}

int token_writer_commit(struct token_writer *w, struct err *err)
{
	FILE *file = w->file;
	int rc = 0;

	put_le(w->header + 24, 8, (uint64_t)w->count);
	if ((w->documents && !append_document_ends(w)) || fseek(file, 0, SEEK_SET) ||
	    fwrite(w->header, 1, HEADER_BYTES, file) != HEADER_BYTES || fflush(file) || fsync(fileno(file)))
		rc = fail_token_write(w, err);
	w->file = NULL;
	if (fclose(file) && !rc)
		rc = fail_token_write(w, err);
	if (!rc && file_whole_keep(&w->whole, w->path))
		rc = fail_token_write(w, err);
	file_whole_drop(&w->whole);
	return rc;
}

void token_writer_close(struct token_writer *w)
{
	if (!w)
		return;
	if (w->file)
		fclose(w->file);
	file_whole_drop(&w->whole);
	if (w->ends)
		fclose(w->ends);
	free(w);
}

/* ---- the files of a split ---- */

#define PATH_BYTES 4200
#define FILES_MAX 100000

/* Matches "NAME.tokens" and "NAME-*.tokens". */
static bool is_split_file(const char *file, const char *name, bool *ret_alone)
{
	size_t n = strlen(name), all = strlen(file), suffix = strlen(TOKEN_FILE_SUFFIX);

	if (all < n + suffix || strncmp(file, name, n) || strcmp(file + all - suffix, TOKEN_FILE_SUFFIX))
		return false;
	*ret_alone = all == n + suffix;
	return *ret_alone || file[n] == '-';
}

bool token_set_probe(const char *folder, const char *name)
{
	DIR *d = opendir(folder);
	bool found = false, alone;
	struct dirent *e;

	while (d && !found && (e = readdir(d)))
		found = is_split_file(e->d_name, name, &alone) || foreign_tokens_probe(folder, e->d_name, name);
	if (d)
		closedir(d);
	return found;
}

static int compare_split_file_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Collects the file names of a split, sorted: our own, else those of other programs. Refuses NAME.tokens
 * next to NAME-*.tokens. */
static int find_split_files(struct token_set *s, const char *folder, const char *name, struct err *err)
{
	DIR *d = opendir(folder);
	bool any_alone = false;
	struct dirent *e;
	int rc = 0;

	if (!d)
		return err_set(err, ERR_USAGE, "%.300s: %s", folder, strerror(errno));
	for (int foreign = 0; foreign < 2 && !s->n; foreign++, rewinddir(d))
		while (!rc && (e = readdir(d))) {
			bool alone = false;

			if (foreign ? !foreign_tokens_probe(folder, e->d_name, name) :
				      !is_split_file(e->d_name, name, &alone))
				continue;
			any_alone |= alone;
			if (s->n == FILES_MAX)
				rc = err_set(err, ERR_USAGE, "%.200s: more than %d token files", folder, FILES_MAX);
			else
				mem_push(&s->name, &s->n, &s->cap, mem_strdup(e->d_name));
		}
	closedir(d);
	if (!rc && any_alone && s->n > 1)
		rc = err_set(err, ERR_USAGE,
			     "%.300s: has both %s" TOKEN_FILE_SUFFIX " and %d files %s-*" TOKEN_FILE_SUFFIX
			     ": keep one of the two",
			     folder, name, s->n - 1, name);
	if (!rc && s->n)
		qsort(s->name, (size_t)s->n, sizeof(*s->name), compare_split_file_names);
	return rc;
}

/* Opens file i and appends its tokens to those of the files before it. */
static int open_split_file(struct token_set *s, int i, const char *path, struct err *err)
{
	const struct token_file *f = &s->file[i];
	int rc = open_token_file(&s->file[i], path, err);

	if (rc)
		return rc;
	if (i && (f->vocab != s->vocab || strcmp(f->tokenizer, s->tokenizer) ||
		  (f->documents && s->documents && f->separator != s->separator)))
		return err_set(err, ERR_USAGE, "%.300s: was made with another tokenizer than %s in the same folder",
			       path, s->name[0]);
	s->first[i + 1] = s->first[i] + f->count;
	s->document[i + 1] = s->document[i] + f->documents;
	s->count = s->first[i + 1];
	s->vocab = f->vocab;
	s->tokenizer = s->file[0].tokenizer;
	if (!f->count) /* an empty file need not have document ends */
		return 0;
	s->documents = (!s->first[i] || s->documents) && f->documents ? s->document[i + 1] : 0;
	s->separator = f->separator;
	return 0;
}

int token_set_open(struct token_set *ret, const char *folder, const char *name, struct err *err)
{
	struct token_set s = { .separator = -1 };
	char path[PATH_BYTES];
	int rc = find_split_files(&s, folder, name, err);

	s.file = mem_array((size_t)s.n, sizeof(*s.file));
	s.first = mem_array((size_t)s.n + 1, sizeof(*s.first));
	s.document = mem_array((size_t)s.n + 1, sizeof(*s.document));
	for (int i = 0; !rc && i < s.n; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, s.name[i]);
		rc = open_split_file(&s, i, path, err);
	}
	if (rc) {
		token_set_close(&s);
		return rc;
	}
	*ret = s;
	return 0;
}

void token_set_close(struct token_set *s)
{
	for (int i = 0; i < s->n; i++) {
		if (s->file)
			file_map_close(&s->file[i].map);
		free(s->name[i]);
	}
	free(s->file);
	free(s->name);
	free(s->first);
	free(s->document);
	*s = (struct token_set){ .n = 0 };
}

/* Returns the last file that begins at or before `at`. Empty files share their start with the next file. */
static int find_file_at(const struct token_set *s, const int64_t *first, int64_t at)
{
	int low = 0, high = s->n;

	while (high - low > 1) {
		int middle = low + (high - low) / 2;

		if (first[middle] <= at)
			low = middle;
		else
			high = middle;
	}
	return low;
}

void token_set_read(const struct token_set *s, int64_t first, int64_t n, int32_t *ret)
{
	for (int i = find_file_at(s, s->first, first); n > 0; i++) {
		int64_t left = s->first[i + 1] - first, take = left < n ? left : n;

		read_file_tokens(&s->file[i], first - s->first[i], take, ret);
		first += take;
		ret += take;
		n -= take;
	}
}

int64_t token_set_document(const struct token_set *s, int64_t i, int64_t *ret_begin)
{
	int file = find_file_at(s, s->document, i);
	int64_t own = i - s->document[file], before = own ? find_document_end(&s->file[file], own - 1) : 0,
		end = find_document_end(&s->file[file], own);

	if (before < 0 || end < 0)
		return -1;
	*ret_begin = s->first[file] + before;
	return s->first[file] + end;
}

void token_set_where(const struct token_set *s, int64_t token, char *ret, size_t bytes)
{
	int file = find_file_at(s, s->first, token);

	snprintf(ret, bytes, "%.200s: from token %lld on", s->name[file], (long long)(token - s->first[file]));
}

uint32_t token_set_sum(const struct token_set *s)
{
	uint32_t all = 0;

	if (s->n == 1)
		return sum_token_file(&s->file[0]);
	for (int i = 0; i < s->n; i++) {
		uint32_t one = sum_token_file(&s->file[i]);

		all = crc32c(all, &one, sizeof(one));
	}
	return all;
}
