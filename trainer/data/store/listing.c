/* SPDX-License-Identifier: Apache-2.0 */
/* listing.c: lists the objects in a folder of a remote store. Of the processes on a machine that began before the
 * listing, one requests it from the server; the others wait for its copy in the user's cache: a file per folder,
 * locked while a process reads it or requests the listing. */
#include "trainer/data/store/data_objects.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/base/crc32c.h"
#include "tracker/base/file.h"
#include "tracker/base/little.h"
#include "tracker/base/sha256.h"
#include "tracker/object/object.h"

#define LISTING_BYTES_MAX ((size_t)8 << 30)
#define MAGIC "DPLISTED"
#define BOOT_BYTES 40
#define AGE_MOST_S 60.0 /* oldest listing that may be shared */
#define WAIT_S 300.0
#define POLL_S 0.01
#define PATH_BYTES 4200
#define ENTRY_BYTES ((size_t)16) /* in front of its texts */

struct listing_opts {
	const char *scheme, *bucket, *prefix;
	const char *delimiter; /* groups keys by their prefix up to it and omits these groups; NULL: none */
	double timeout_s;
};

struct listing_entry {
	const char *key; /* without the prefix; never empty */
	uint64_t bytes;
	const char *version;
};

struct listing_header {
	char magic[8];
	char boot[BOOT_BYTES];
	double began, ended; /* since boot */
	uint64_t bytes;	     /* size of the listing after the header */
	uint32_t crc;	     /* of the listing */
	uint32_t zero;
};

static double boot_clock_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Reads the first line, at most n - 1 bytes, of a kernel file; "": error. */
static void read_kernel_line(const char *path, char *ret, size_t n)
{
	FILE *f = fopen(path, "re");

	if (!f || !fgets(ret, (int)n, f))
		*ret = '\0';
	if (f)
		fclose(f);
}

/* Start of this process in seconds since boot; 0: unknown. */
static double process_start_s(void)
{
	char text[1024], *at;
	unsigned long long ticks = 0;

	read_kernel_line("/proc/self/stat", text, sizeof(text));
	at = strrchr(text, ')'); /* skips the program's name; the start time is the 20th word after it */
	for (int i = 0; at && i < 20; i++)
		at = strchr(at + 1, ' ');
	if (at)
		ticks = strtoull(at, NULL, 10);
	return (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

static bool make_listing_path(const struct listing_opts *o, struct object_client *c, char ret[PATH_BYTES])
{
	char url[OBJECT_URL_BYTES], host[128] = "", hex[65];
	struct sha256 sum;
	size_t n;

	if (!cache_home(ret, PATH_BYTES))
		return false;
	gethostname(host, sizeof(host) - 1);
	object_url(c, url);
	sha256_init(&sum);
	sha256_add(&sum, host, strlen(host) + 1);
	sha256_add(&sum, url, strlen(url) + 1);
	sha256_add(&sum, o->prefix, strlen(o->prefix) + 1);
	sha256_add(&sum, o->delimiter ? o->delimiter : "", o->delimiter ? strlen(o->delimiter) : 0);
	sha256_end(&sum, hex);
	n = strlen(ret);
	return (size_t)snprintf(ret + n, PATH_BYTES - n, "/%.16s.list", hex) < PATH_BYTES - n;
}

/* Waits for the exclusive lock. False after WAIT_S: the holder hangs. */
static bool lock_listing_file(int fd)
{
	const double until = clock_mono_s() + WAIT_S;

	while (flock(fd, LOCK_EX | LOCK_NB)) {
		if ((errno != EWOULDBLOCK && errno != EINTR) || clock_mono_s() > until)
			return false;
		clock_sleep_s(POLL_S);
	}
	return true;
}

/* Opens the file, locked. Negative: this process requests the listing itself. */
static int open_kept_listing(const struct listing_opts *o, struct object_client *c)
{
	char path[PATH_BYTES];
	struct stat st;
	int fd = make_listing_path(o, c, path) ? open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 022 ||
	    !lock_listing_file(fd)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Reads a listing that another process requested after this one began. */
static bool read_kept_listing(int fd, const char *boot, double since, struct buf *ret)
{
	struct listing_header h;
	char *to;

	if (file_read(fd, 0, &h, sizeof(h)) != (ssize_t)sizeof(h) || memcmp(h.magic, MAGIC, sizeof(h.magic)) ||
	    memcmp(h.boot, boot, BOOT_BYTES) || h.began < since || !(boot_clock_s() - h.ended < AGE_MOST_S))
		return false;
	to = buf_reserve(ret, h.bytes);
	if (!to || file_read(fd, sizeof(h), to, h.bytes) != (ssize_t)h.bytes || crc32c(0, to, h.bytes) != h.crc)
		return false;
	ret->len += h.bytes;
	return true;
}

static bool write_fully_at(int fd, size_t at, const void *bytes, size_t n)
{
	for (size_t done = 0; done < n;) {
		ssize_t put = pwrite(fd, (const char *)bytes + done, n - done, (off_t)(at + done));

		if (put <= 0)
			return false;
		done += (size_t)put;
	}
	return true;
}

/* Writes the header last: without it the file is invalid. */
static void write_kept_listing(int fd, const char *boot, double began, const struct buf *listing)
{
	struct listing_header h = { .magic = MAGIC, .began = began, .ended = boot_clock_s(), .bytes = listing->len };

	memcpy(h.boot, boot, BOOT_BYTES);
	h.crc = crc32c(0, listing->data, listing->len);
	if (ftruncate(fd, 0) || !write_fully_at(fd, sizeof(h), listing->data, listing->len) ||
	    !write_fully_at(fd, 0, &h, sizeof(h)))
		(void)!ftruncate(fd, 0);
}

struct listing_request {
	struct buf *to;
	size_t prefix;
};

/* An entry: object size, sizes of both texts with their NULs, and the texts. */
static int append_listed_entry(void *user, const struct object_entry *e, struct err *err)
{
	struct listing_request *a = user;
	const char *key = e->key + a->prefix;
	char version[OBJECT_ETAG_BYTES + OBJECT_GENERATION_BYTES];

	if (e->shared || !*key)
		return 0;
	snprintf(version, sizeof(version), "%s%s%s", e->facts.etag, e->facts.generation[0] ? "#" : "",
		 e->facts.generation);
	buf_add_u64le(a->to, e->facts.bytes);
	buf_add_u32le(a->to, (uint32_t)strlen(key) + 1);
	buf_add_u32le(a->to, (uint32_t)strlen(version) + 1);
	buf_add(a->to, key, strlen(key) + 1);
	buf_add(a->to, version, strlen(version) + 1);
	return buf_failed(a->to) ? err_set(err, ERR_LIMIT, "a listing exceeds %zu bytes", a->to->max) : 0;
}

/* Fills *ret, initialised by the caller; decode it with next_listing_entry. ERR_NOENT: no such bucket. */
static int take_listing(struct buf *ret, const struct listing_opts *o, struct err *err)
{
	struct listing_request request = { ret, strlen(o->prefix) };
	char boot[BOOT_BYTES] = "";
	double since = process_start_s(), began;
	struct object_client *c;
	int fd = -1, rc = object_open(&c, o->bucket,
				      &(struct object_opts){ .scheme = o->scheme, .timeout_s = o->timeout_s }, err);

	if (rc)
		return rc;
	read_kernel_line("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
	if (since > 0 && *boot)
		fd = open_kept_listing(o, c);
	if (fd < 0 || !read_kept_listing(fd, boot, since, ret)) {
		buf_reset(ret);
		began = boot_clock_s();
		rc = object_list(c, &(struct object_list){ o->prefix, o->delimiter, append_listed_entry, &request },
				 err);
		if (!rc && fd >= 0)
			write_kept_listing(fd, boot, began, ret);
	}
	if (fd >= 0)
		close(fd);
	object_close(c);
	return rc;
}

/* Decodes the next entry. Set *at to 0 first. False: the end. */
static bool next_listing_entry(const struct buf *listing, size_t *at, struct listing_entry *ret)
{
	size_t left = listing->len - *at, key, etag;
	const char *from;

	if (left < ENTRY_BYTES)
		return false;
	from = listing->data + *at;
	key = little_get_u32(from + 8);
	etag = little_get_u32(from + 12);
	from += ENTRY_BYTES;
	if (!key || !etag || key + etag > left - ENTRY_BYTES || from[key - 1] || from[key + etag - 1])
		return false;
	*ret = (struct listing_entry){ from, little_get_u64(from - ENTRY_BYTES), from + key };
	*at += ENTRY_BYTES + key + etag;
	return true;
}

int objects_list(const char *address, const struct objects_lister *l, struct err *err)
{
	char bucket[OBJECT_BUCKET_BYTES], prefix[OBJECT_KEY_MAX + 2];
	struct listing_entry e;
	struct buf listing;
	const char *key;
	size_t at = 0;
	int rc = object_split(address, bucket, &key, err);

	if (rc)
		return rc;
	snprintf(prefix, sizeof(prefix), "%s%s", key, *key && key[strlen(key) - 1] != '/' ? "/" : "");
	buf_init(&listing, LISTING_BYTES_MAX);
	rc = take_listing(&listing,
			  &(struct listing_opts){ object_scheme(address), bucket, prefix, l->below ? NULL : "/",
						  l->timeout_s },
			  err);
	while (!rc && next_listing_entry(&listing, &at, &e))
		rc = l->each(l->user, &(struct objects_entry){ e.key, e.bytes, e.version }, err);
	buf_done(&listing);
	if (rc == ERR_IO && err)
		rc = err->code = ERR_USAGE; /* as when a file cannot be read */
	return rc == ERR_NOENT && err ? err_set(err, ERR_USAGE, "%.300s: does not exist", address) : rc;
}
