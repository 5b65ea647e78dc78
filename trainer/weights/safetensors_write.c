/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors_write.c: writes a safetensors file: complete under its name, or absent. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "tracker/base/crc32c.h"
#include "tracker/base/file.h"
#include "tracker/base/round.h"
#include "tracker/mem/mem.h"
#include "trainer/weights/safetensors.h"

#define CHUNK_BYTES ((size_t)1 << 20) /* stays in the cache until its checksum is computed */

static size_t described_bytes(const struct st_tensor *t)
{
	size_t n = st_dtype_bytes(t->dtype);

	for (int i = 0; i < t->ndim; i++)
		n *= (size_t)t->dim[i];
	return n;
}

/* Returns NULL if out of memory. */
static json_t *header_entry(const struct st_tensor *t, size_t begin)
{
	json_t *shape = json_array();
	int bad = !shape;

	for (int i = 0; i < t->ndim; i++)
		bad |= json_array_append_new(shape, json_integer(t->dim[i]));
	if (bad) {
		json_decref(shape);
		return NULL;
	}
	return json_pack("{s:s, s:o, s:[I, I]}", "dtype", st_dtype_name(t->dtype), "shape", shape, "data_offsets",
			 (json_int_t)begin, (json_int_t)(begin + described_bytes(t)));
}

static int fill_header(json_t *root, const struct st_write_opts *o)
{
	size_t at = 0;
	json_t *meta = json_object();
	int bad = !root || !meta;

	for (size_t i = 0; i < o->n_meta; i++)
		bad |= json_object_set_new(meta, o->meta[i].key, json_string(o->meta[i].value));
	if (o->n_meta)
		bad |= json_object_set(root, "__metadata__", meta);
	for (size_t i = 0; i < o->n_tensors; i++) {
		bad |= json_object_set_new(root, o->tensors[i].name, header_entry(&o->tensors[i], at));
		at += described_bytes(&o->tensors[i]);
	}
	json_decref(meta);
	return bad || json_object_size(root) != o->n_tensors + (o->n_meta > 0);
}

/* Returns the JSON header, padded with spaces so that the data begins at a multiple of 8; NULL on failure. */
static char *make_header_text(const struct st_write_opts *o, size_t *ret_n)
{
	json_t *root = json_object();
	size_t n = fill_header(root, o) ? 0 : json_dumpb(root, NULL, 0, JSON_COMPACT), padded = round_up_bytes(n, 8);
	char *text = n ? mem_alloc(padded) : NULL;

	if (text) {
		memset(text, ' ', padded);
		if (json_dumpb(root, text, n, JSON_COMPACT) != n) {
			free(text);
			text = NULL;
		}
	}
	*ret_n = padded;
	json_decref(root);
	return text;
}

struct file_output {
	int fd;
	const char *path;
	struct st_sum sum;
};

static int write_summed(struct file_output *out, const void *bytes, size_t n, struct err *err)
{
	const char *at = bytes;

	while (n > 0) {
		const size_t some = n > CHUNK_BYTES ? CHUNK_BYTES : n;

		if (file_write(out->fd, at, some))
			return err_set_errno(err, errno, "cannot write %.300s", out->path);
		out->sum.crc32c = crc32c(out->sum.crc32c, at, some);
		out->sum.bytes += some;
		at += some;
		n -= some;
	}
	return 0;
}

static int write_tensor_data(struct file_output *out, const struct st_write_opts *o, size_t i, struct err *err)
{
	const size_t bytes = described_bytes(&o->tensors[i]);
	struct st_part part = { .tensor = i };
	int rc = 0;

	if (!o->fetch_part) {
		rc = o->fetch(o->user, i, &part.data, err);
		return rc ? rc : write_summed(out, part.data, bytes, err);
	}
	for (; !rc && part.at < bytes; part.at += part.bytes) {
		rc = o->fetch_part(o->user, &part, err);
		if (!rc)
			rc = write_summed(out, part.data, part.bytes, err);
	}
	return rc;
}

/* Writes length, header and tensors, then fsync. */
static int write_contents(struct file_output *out, const struct st_write_opts *o, struct err *err)
{
	unsigned char length[8];
	size_t n = 0;
	char *header = make_header_text(o, &n);
	int rc;

	if (!header || n > SAFETENSORS_HEADER_MAX) {
		free(header);
		return err_set(err, ERR_LIMIT,
			       "%.300s: cannot create the header (duplicate, bad or too many names, or no memory)",
			       o->path);
	}
	for (int i = 0; i < 8; i++)
		length[i] = (unsigned char)((uint64_t)n >> 8 * i);
	rc = write_summed(out, length, sizeof(length), err);
	if (!rc)
		rc = write_summed(out, header, n, err);
	free(header);
	for (size_t i = 0; i < o->n_tensors && !rc; i++)
		rc = write_tensor_data(out, o, i, err);
	if (!rc && fsync(out->fd))
		rc = err_set_errno(err, errno, "cannot sync %.300s", o->path);
	return rc;
}

/* Makes the new name durable; failure is ignored, as some file systems do not support it. */
static void sync_parent_folder(const char *path)
{
	char folder[PATH_MAX];
	int fd;

	file_name_folder(path, folder, sizeof(folder));
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
}

int safetensors_write(const struct st_write_opts *o, struct err *err)
{
	char temporary[4096];
	int n = snprintf(temporary, sizeof(temporary), "%s.tmp-%ld", o->path, (long)getpid()), rc;
	struct file_output out = { .path = o->path };

	if (n < 0 || (size_t)n >= sizeof(temporary))
		return err_set(err, ERR_USAGE, "%.300s…: the name is too long", o->path);
	out.fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (out.fd < 0)
		return err_set_errno(err, errno, "cannot create %.300s", temporary);
	rc = write_contents(&out, o, err);
	if (close(out.fd) && !rc)
		rc = err_set_errno(err, errno, "cannot write %.300s", o->path);
	if (!rc && rename(temporary, o->path))
		rc = err_set_errno(err, errno, "cannot rename %.300s to its final name", temporary);
	if (rc) {
		unlink(temporary);
		return rc;
	}
	sync_parent_folder(o->path);
	if (o->ret_sum)
		*o->ret_sum = out.sum;
	return 0;
}
