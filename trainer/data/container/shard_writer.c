/* SPDX-License-Identifier: Apache-2.0 */
/* shard_writer.c: writes tar shards and their indexes. */
#include "trainer/data/container/shard_writer.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracker/base/crc32c.h"
#include "tracker/base/md5.h"
#include "tracker/base/text.h"
#include "tracker/mem/mem.h"
#include "trainer/data/container/tar_walk.h"

#define PATH_BYTES 4300
#define IDX_BYTES_MAX ((size_t)1 << 34)
#define END_BYTES (2 * TAR_BLOCK)

struct shard_writer {
	struct shard_writer_opts o;
	json_t *list; /* finished shards */
	uint64_t all_bytes;
	int n; /* shards begun */
	bool decoded;
	/* The open shard: */
	FILE *file;
	char path[PATH_BYTES];
	uint64_t bytes;
	int64_t samples;
	struct md5 md5;
	uint32_t crc; /* checksum of its last piece so far */
	json_t *crcs;
	struct buf idx, labels;
};

struct shard_writer *shard_writer_new(const struct shard_writer_opts *o)
{
	struct shard_writer *w = mem_zalloc(sizeof(*w));

	w->list = json_array();
	w->o = *o;
	buf_init(&w->idx, IDX_BYTES_MAX);
	buf_init(&w->labels, IDX_BYTES_MAX);
	return w;
}

void shard_writer_free(struct shard_writer *w)
{
	if (!w)
		return;
	if (w->file)
		fclose(w->file);
	json_decref(w->list);
	json_decref(w->crcs);
	buf_done(&w->idx);
	buf_done(&w->labels);
	free(w);
}

int shard_writer_shards(const struct shard_writer *w)
{
	return w->n;
}

void shard_writer_say_decoded(struct shard_writer *w)
{
	w->decoded = true;
}

uint64_t shard_writer_bytes(const struct shard_writer *w)
{
	return w->all_bytes;
}

/* Flushes the file to disk and closes it. */
static int sync_and_close_file(FILE *f, const char *path, struct err *err)
{
	int rc = fflush(f) || fsync(fileno(f)) ? err_set_errno(err, errno, "cannot write %.300s", path) : 0;

	if (fclose(f) && !rc)
		rc = err_set_errno(err, errno, "cannot write %.300s", path);
	return rc;
}

static int write_index_text(const char *path, const void *text, size_t n, struct err *err)
{
	FILE *f = fopen(path, "wbe");

	if (!f)
		return err_set_errno(err, errno, "cannot create %.300s", path);
	if (fwrite(text, 1, n, f) != n) {
		err_set_errno(err, errno, "cannot write %.300s", path);
		fclose(f);
		return ERR_IO;
	}
	return sync_and_close_file(f, path, err);
}

static void append_piece_crc(struct shard_writer *w)
{
	char hex[9];

	snprintf(hex, sizeof(hex), "%08x", w->crc);
	json_array_append_new(w->crcs, json_string(hex));
	w->crc = 0;
}

static int put_shard_bytes(struct shard_writer *w, const void *bytes, size_t n, struct err *err)
{
	const char *at = bytes;

	if (fwrite(bytes, 1, n, w->file) != n)
		return err_set_errno(err, errno, "cannot write %.300s", w->path);
	md5_add(&w->md5, bytes, n);
	while (n) {
		uint64_t room = SHARD_WRITER_CRC_BYTES - w->bytes % SHARD_WRITER_CRC_BYTES;
		size_t now = n < room ? n : (size_t)room;

		w->crc = crc32c(w->crc, at, now);
		w->bytes += now;
		at += now;
		n -= now;
		if (now == room)
			append_piece_crc(w);
	}
	return 0;
}

static int begin_shard(struct shard_writer *w, struct err *err)
{
	snprintf(w->path, sizeof(w->path), "%.4000s/%.60s-%06d.tar", w->o.folder, w->o.part, w->n++);
	w->file = fopen(w->path, "wbe");
	if (!w->file)
		return err_set_errno(err, errno, "cannot create %.300s", w->path);
	w->bytes = 0;
	w->samples = 0;
	w->crc = 0;
	w->crcs = json_array();
	md5_init(&w->md5);
	return w->crcs ? 0 : err_nomem(err, NULL);
}

/* Writes DALI's index, version 1.2: the number of samples, then a line per sample with offset, size and name of its
 * fields. */
static int write_dali_index(struct shard_writer *w, struct err *err)
{
	char path[PATH_BYTES];
	struct buf text;
	int rc;

	buf_init(&text, IDX_BYTES_MAX);
	buf_addf(&text, "v1.2 %lld\n", (long long)w->samples);
	buf_add(&text, w->idx.data, w->idx.len);
	snprintf(path, sizeof(path), "%.*s.idx", (int)(strlen(w->path) - strlen(".tar")), w->path);
	rc = write_index_text(path, text.data, text.len, err);
	buf_done(&text);
	buf_reset(&w->idx);
	return rc;
}

/* Closes the open shard and adds it to the index. */
static int finish_shard(struct shard_writer *w, struct err *err)
{
	static const char zeros[END_BYTES];
	unsigned char digest[16];
	char md5[33];
	FILE *f = w->file;
	json_t *entry;
	int rc = put_shard_bytes(w, zeros, sizeof(zeros), err);

	if (rc)
		return rc;
	if (w->bytes % SHARD_WRITER_CRC_BYTES)
		append_piece_crc(w);
	md5_end(&w->md5, digest);
	text_hex(md5, digest, sizeof(digest));
	w->file = NULL;
	rc = sync_and_close_file(f, w->path, err);
	if (rc)
		return rc;
	w->all_bytes += w->bytes;
	entry = json_pack("{s:s, s:s, s:I, s:I, s:o}", "url", strrchr(w->path, '/') + 1, "md5sum", md5, "nsamples",
			  (json_int_t)w->samples, "filesize", (json_int_t)w->bytes, "crc32c", w->crcs);
	w->crcs = NULL;
	buf_addc(&w->labels, '\0');
	if (!entry || json_object_set_new(entry, "labels", json_string(w->labels.data)) ||
	    json_array_append_new(w->list, entry))
		return err_nomem(err, "the index of the shards");
	buf_reset(&w->labels);
	return write_dali_index(w, err);
}

static int put_shard_item(struct shard_writer *w, const char *key, const struct shard_item *i, struct err *err)
{
	static const char zeros[TAR_BLOCK];
	char header[TAR_BLOCK], name[100];
	int rc;

	if (snprintf(name, sizeof(name), "%s.%s", key, i->field) >= (int)sizeof(name))
		return err_set(err, ERR_USAGE, "%.200s.%.20s: the name is too long for a shard", key, i->field);
	tar_block_make(header, name, i->n);
	rc = put_shard_bytes(w, header, sizeof(header), err);
	buf_addf(&w->idx, "%s%s %llu %zu %s", w->idx.len && w->idx.data[w->idx.len - 1] != '\n' ? " " : "", i->field,
		 (unsigned long long)w->bytes, i->n, name);
	if (!rc)
		rc = put_shard_bytes(w, i->bytes, i->n, err);
	return rc ? rc : put_shard_bytes(w, zeros, (size_t)(tar_block_padded(i->n) - i->n), err);
}

/* Checks the first sample: a shard per sample would make countless small files. */
static int check_shard_size(const struct shard_writer *w, uint64_t sample, struct err *err)
{
	if (w->file || w->n || END_BYTES + 2 * sample <= w->o.shard_bytes)
		return 0;
	return err_set(err, ERR_USAGE,
		       "--shard-size %llu: is too small: the first sample takes %llu "
		       "bytes: give %llu or more",
		       (unsigned long long)w->o.shard_bytes, (unsigned long long)sample,
		       (unsigned long long)(END_BYTES + 2 * sample));
}

int shard_writer_add(struct shard_writer *w, const char *key, const struct shard_item *items, int n, struct err *err)
{
	uint64_t need = END_BYTES;
	int rc = 0;

	for (int i = 0; i < n; i++)
		need += TAR_BLOCK + tar_block_padded(items[i].n);
	rc = check_shard_size(w, need - END_BYTES, err);
	if (!rc && w->file && w->samples && w->bytes + need > w->o.shard_bytes)
		rc = finish_shard(w, err);
	if (!rc && !w->file)
		rc = begin_shard(w, err);
	if (rc)
		return rc;
	for (int i = 0; !rc && i < n; i++) {
		rc = put_shard_item(w, key, &items[i], err);
		if (!strcmp(items[i].field, "cls"))
			buf_addf(&w->labels, "%s%.*s", w->labels.len ? " " : "", (int)items[i].n,
				 (const char *)items[i].bytes);
	}
	buf_addc(&w->idx, '\n');
	w->samples++;
	return rc;
}

static json_t *make_json_numbers(const double v[4], int n)
{
	json_t *list = json_array();

	for (int i = 0; i < n; i++)
		json_array_append_new(list, json_real(v[i]));
	return list;
}

/* A folder's name may be invalid UTF-8: falls back to the number. */
static json_t *make_class_name(const char *class_name, int i)
{
	json_t *name = json_string(class_name);
	char number[16];

	snprintf(number, sizeof(number), "%d", i);
	return name ? name : json_string(number);
}

static json_t *make_wids_index(const struct shard_writer *w)
{
	json_t *root = json_pack("{s:s, s:i, s:O}", "__kind__", "wids-shard-index-v1", "wids_version", 1, "shardlist",
				 w->list);
	json_t *names = w->o.classes && root ? json_array() : NULL;

	for (int i = 0; names && i < w->o.n_classes; i++)
		json_array_append_new(names, make_class_name(w->o.classes[i], i));
	if (names)
		json_object_set_new(root, "classes", names);
	if (root && w->o.channels)
		json_object_set_new(root, "dptrain",
				    json_pack("{s:o, s:o}", "mean", make_json_numbers(w->o.mean, w->o.channels), "std",
					      make_json_numbers(w->o.std, w->o.channels)));
	else if (root && w->decoded)
		json_object_set_new(root, "dptrain", json_pack("{s:b}", "decoded", 1));
	return root;
}

int shard_writer_end(struct shard_writer *w, struct err *err)
{
	char path[PATH_BYTES], *text;
	json_t *root;
	int rc = w->file ? finish_shard(w, err) : 0;

	if (rc)
		return rc;
	root = make_wids_index(w);
	text = root ? json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) : NULL;
	snprintf(path, sizeof(path), "%.4000s/%.60s.json", w->o.folder, w->o.part);
	rc = text ? write_index_text(path, text, strlen(text), err)
		  : err_set(err, ERR_NOMEM, "out of memory: %.300s", path);
	free(text);
	json_decref(root);
	return rc;
}
