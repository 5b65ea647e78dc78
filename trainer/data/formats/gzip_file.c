/* SPDX-License-Identifier: Apache-2.0 */
/* gzip_file.c: zlib's reader, which continues with the next member and checks sizes and checksums, with errors in one
 * line. */
#include "tracker/mem/mem.h"
#include "trainer/data/formats/formats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define CHUNK_MAX ((size_t)1 << 30) /* zlib counts in 32 bits */
#define BUFFER_BYTES (1u << 17)

struct gzip_file {
	gzFile file;
	char *path;
};

int gzip_file_open(struct gzip_file **ret, const char *path, struct err *err)
{
	struct gzip_file *g = mem_zalloc(sizeof(*g));
	int rc;

	g->path = mem_strdup(path);
	errno = ENOMEM; /* zlib's own failure */
	g->file = gzopen(path, "rbe");
	if (!g->file) {
		rc = errno == ENOMEM ? err_nomem(err, path)
				     : err_set(err, ERR_USAGE, "%.300s: %s", path, strerror(errno));
		gzip_file_close(g);
		return rc;
	}
	gzbuffer(g->file, BUFFER_BYTES);
	*ret = g;
	return 0;
}

void gzip_file_close(struct gzip_file *g)
{
	if (!g)
		return;
	if (g->file)
		gzclose(g->file);
	free(g->path);
	free(g);
}

int gzip_file_read(struct gzip_file *g, void *to, size_t n, size_t *ret_n, struct err *err)
{
	const char *why;
	size_t done = 0;
	int got = 1, code;

	for (; done < n && got > 0; done += got > 0 ? (size_t)got : 0)
		got = gzread(g->file, (char *)to + done, (unsigned)(n - done < CHUNK_MAX ? n - done : CHUNK_MAX));
	why = gzerror(g->file, &code);
	if (code == Z_MEM_ERROR)
		return err_nomem(err, g->path);
	if (code == Z_BUF_ERROR && done < n)
		return err_set(err, ERR_USAGE, "%.300s: truncated: its gzip data stops after %lld bytes", g->path,
			       (long long)gztell(g->file));
	if (got < 0)
		return err_set(err, ERR_USAGE, "%.300s: is damaged gzip data after %lld bytes (%.100s)", g->path,
			       (long long)gztell(g->file), why);
	*ret_n = done;
	return 0;
}
