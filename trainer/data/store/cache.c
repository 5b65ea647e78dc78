/* SPDX-License-Identifier: Apache-2.0 */
/* cache.c: one file per block, <folder>/dptrain-blocks/<2 digits>/<62 digits>: its bytes, the CRC-32C of each piece,
 * and a tail. A file gets its name when it is complete. The file "lock" contains the total size of all blocks,
 * shared by all processes. Locks on its bytes protect each block that is being fetched (by its hash) and the sweep. */
#include "trainer/data/store/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "tracker/base/crc32c.h"
#include "tracker/base/file.h"
#include "tracker/base/sha256.h"
#include "tracker/base/text.h"
#include "tracker/mem/mem.h"

#define PIECE ((size_t)64 << 10)
#define PIECES_MAX 256			 /* per block */
#define MAGIC UINT64_C(0x31656863616374) /* "tcache1" */
#define SWEEP_LOCK ((off_t)INT64_MAX - 1)
#define ROOM_LOCK ((off_t)INT64_MAX - 2)
#define LOCK_BYTES 4096
#define HAD_BYTES ((uint64_t)4 << 20)

/* The tail, after a block's bytes and CRCs. */
struct block_tail {
	uint64_t magic, bytes;
	uint32_t pieces, crc; /* crc: of the CRCs */
};

/* The tail of a block, and the CRCs of its pieces. */
struct block_check {
	struct block_tail tail;
	uint32_t crc[PIECES_MAX];
};

/* The shared memory in the lock file. */
struct cache_shared {
	_Atomic uint64_t used;		  /* bytes of all blocks */
	_Atomic uint64_t swept;		  /* the total was computed once */
	_Atomic uint64_t copies;	  /* bytes of them that are copies */
	unsigned char id[CACHE_ID_BYTES]; /* zeros until it is drawn, under the lock of the sweep */
};

struct cache {
	char folder[CACHE_PATH_BYTES];
	uint64_t most_bytes; /* of all blocks; 0: no limit */
	uint64_t had_bytes;  /* of the marks in the lock file: see find_had_byte */
	struct cache_ram *ram; /* NULL: a folder on disk */
	int lock_fd;
	struct cache_shared *shared;
	pthread_mutex_t room;  /* threads of a cache share its locks: with a limit, one at a time stores a block */
	pthread_mutex_t mutex; /* protects notice */
	char notice[400];
	bool noticed;
	_Atomic bool copies_end;  /* the disk is full: no room for copies */
	char writer[17];	  /* random, in names of unfinished files: other caches write to the folder too */
	_Atomic uint64_t numbers; /* numbers names of unfinished files */
};

static bool lock_byte(struct cache *c, off_t at, short type, bool waits)
{
	struct flock l = { .l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1 };
	int rc;

	do
		rc = fcntl(c->lock_fd, waits ? F_OFD_SETLKW : F_OFD_SETLK, &l);
	while (rc && errno == EINTR);
	return !rc;
}

static int refuse_cache(const struct cache *c, const char *why, struct err *err)
{
	return err_set(err, ERR_USAGE, "--cache %.300s: %s", c->folder, why);
}

static int make_cache_folder(struct cache *c, const char *folder, struct err *err)
{
	struct stat st;

	if (snprintf(c->folder, sizeof(c->folder), "%s", folder) >= (int)sizeof(c->folder) - 100)
		return err_set(err, ERR_USAGE, "--cache %.300s: is too long", folder);
	if (mkdir(c->folder, 0777) && errno != EEXIST)
		return refuse_cache(c, strerror(errno), err);
	snprintf(c->folder + strlen(c->folder), 50, "/dptrain-blocks");
	if (mkdir(c->folder, 0700) && errno != EEXIST)
		return refuse_cache(c, strerror(errno), err);
	if (lstat(c->folder, &st) || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 022)
		return refuse_cache(c, "expected a folder that only you can write to", err);
	return 0;
}

/* Opens or makes the lock file, and takes its bytes off the limit, of which its marks use at most a sixteenth. */
static int open_lock_file(struct cache *c, struct err *err)
{
	const uint64_t marks = c->most_bytes && c->most_bytes / 16 < HAD_BYTES ? c->most_bytes / 16 + 1 : HAD_BYTES;
	char path[CACHE_PATH_BYTES];
	struct stat st;
	int rc;

	snprintf(path, sizeof(path), "%.4000s/lock", c->folder);
	c->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (c->lock_fd < 0 || fstat(c->lock_fd, &st))
		return refuse_cache(c, strerror(errno), err);
	rc = st.st_size < LOCK_BYTES ? posix_fallocate(c->lock_fd, 0, LOCK_BYTES) : 0; /* a hole may be fatal later */
	if (rc)
		return refuse_cache(c, strerror(rc), err);
	if (st.st_size <= LOCK_BYTES) /* room for marks while the disk has it: see mark_had_block */
		(void)!fallocate(c->lock_fd, 0, LOCK_BYTES, (off_t)marks);
	if (fstat(c->lock_fd, &st))
		return refuse_cache(c, strerror(errno), err);
	c->had_bytes = st.st_size > LOCK_BYTES ? (uint64_t)st.st_size - LOCK_BYTES : marks;
	if (c->most_bytes)
		c->most_bytes -= c->most_bytes > (uint64_t)st.st_size ? (uint64_t)st.st_size : c->most_bytes - 1;
	c->shared = mmap(NULL, LOCK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, c->lock_fd, 0);
	if (c->shared == MAP_FAILED) {
		c->shared = NULL;
		return refuse_cache(c, strerror(errno), err);
	}
	return 0;
}

/* Removes blocks until the rest is at most `goal` bytes (0: none), and recomputes the sizes. Under the lock of the
 * sweep. */
static void sweep_to_goal(struct cache *c, uint64_t goal)
{
	const struct cache_used left = cache_sweep_folder(c->folder, goal);

	atomic_store(&c->shared->used, left.bytes);
	atomic_store(&c->shared->copies, left.copies);
}

/* Recomputes the total size, and removes the oldest blocks until `more` bytes fit. */
static void sweep_cache(struct cache *c, uint64_t more)
{
	uint64_t goal = 0;

	if (!lock_byte(c, SWEEP_LOCK, F_WRLCK, true))
		return;
	if (more && c->most_bytes) /* frees more than needed: a sweep visits every file */
		goal = c->most_bytes - c->most_bytes / 16 > more ? c->most_bytes - c->most_bytes / 16 - more : 1;
	if (!more || c->shared->used + more > c->most_bytes) /* unless another process has swept */
		sweep_to_goal(c, goal);
	atomic_store(&c->shared->swept, 1);
	lock_byte(c, SWEEP_LOCK, F_UNLCK, false);
}

/* Draws the id of a new folder. */
static int draw_cache_id(struct cache *c, struct err *err)
{
	static const unsigned char none[CACHE_ID_BYTES];
	char hex[2 * CACHE_ID_BYTES + 1];
	int rc = 0;

	if (!lock_byte(c, SWEEP_LOCK, F_WRLCK, true))
		return refuse_cache(c, strerror(errno), err);
	if (!memcmp(c->shared->id, none, sizeof(none))) {
		if (text_random_hex(hex, CACHE_ID_BYTES))
			rc = refuse_cache(c, "cannot get random bytes", err);
		else
			text_unhex(c->shared->id, hex, CACHE_ID_BYTES);
	}
	lock_byte(c, SWEEP_LOCK, F_UNLCK, false);
	return rc;
}

void cache_id(const struct cache *c, unsigned char ret[CACHE_ID_BYTES])
{
	memcpy(ret, c->shared->id, CACHE_ID_BYTES);
}

int cache_open(struct cache **ret, const struct cache_opts *o, struct err *err)
{
	struct cache *c = mem_zalloc(sizeof(*c));
	char folder[CACHE_PATH_BYTES];
	int rc = 0;

	c->lock_fd = -1;
	c->most_bytes = o->most_bytes;
	pthread_mutex_init(&c->mutex, NULL);
	pthread_mutex_init(&c->room, NULL);
	if (text_random_hex(c->writer, 8))
		rc = err_set_errno(err, errno, "--cache %.300s: cannot get random bytes", o->folder);
	if (!rc && !strcmp(o->folder, CACHE_RAM))
		rc = cache_ram_open(&c->ram, folder, err);
	if (!rc)
		rc = make_cache_folder(c, c->ram ? folder : o->folder, err);
	if (!rc)
		rc = open_lock_file(c, err);
	if (!rc)
		rc = draw_cache_id(c, err);
	if (rc) {
		cache_close(c);
		return rc;
	}
	if (!c->shared->swept)
		sweep_cache(c, 0);
	*ret = c;
	return 0;
}

void cache_close(struct cache *c)
{
	if (!c)
		return;
	if (c->shared)
		munmap(c->shared, LOCK_BYTES);
	if (c->lock_fd >= 0)
		close(c->lock_fd);
	cache_ram_close(c->ram);
	pthread_mutex_destroy(&c->mutex);
	pthread_mutex_destroy(&c->room);
	free(c);
}

int cache_fits(const struct cache *c, uint64_t bytes, uint64_t memory, struct err *err)
{
	uint64_t most = c->most_bytes && c->most_bytes < bytes ? c->most_bytes : bytes, used = c->shared->used, room;
	struct statvfs st;

	if (!c->ram || fstatvfs(c->lock_fd, &st))
		return 0;
	room = (uint64_t)st.f_bavail * st.f_frsize;
	room = memory && memory < room ? memory : room;
	room -= room / 16; /* reserve for everything else */
	if (most <= used + room)
		return 0;
	return err_set(err, ERR_USAGE,
		       "--cache ram: needs %.1f GB, but memory and /dev/shm have room for %.1f GB: use "
		       "--cache-size %.0fM, or a folder as --cache",
		       (double)most / 1e9, (double)(used + room) / 1e9, (double)(used + room) / 1e6 - 0.5);
}

void cache_name(const struct cache_key *k, struct cache_block *ret)
{
	char text[64];
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, k->address, strlen(k->address) + 1);
	sha256_add(&s, k->version, strlen(k->version) + 1);
	sha256_add(&s, text, (size_t)snprintf(text, sizeof(text), "%llu %llu", (unsigned long long)k->bytes,
					      (unsigned long long)k->begin));
	sha256_end(&s, ret->name);
}

static void make_block_path(const struct cache *c, const struct cache_block *b, char ret[CACHE_PATH_BYTES])
{
	snprintf(ret, CACHE_PATH_BYTES, "%.4000s/%.2s/%.62s", c->folder, b->name, b->name + 2);
}

/* Opens a block's file. Refuses files that other users may have written. */
static int open_block_file(const struct cache *c, const struct cache_block *b, uint64_t *ret_bytes)
{
	char path[CACHE_PATH_BYTES];
	struct stat st;
	int fd;

	make_block_path(c, b, path);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 022) {
		close(fd);
		return -1;
	}
	*ret_bytes = (uint64_t)st.st_size;
	return fd;
}

bool cache_has(struct cache *c, const struct cache_block *b)
{
	uint64_t bytes;
	int fd = open_block_file(c, b, &bytes);

	if (fd < 0)
		return false;
	futimens(fd, NULL);
	posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED);
	close(fd);
	return true;
}

bool cache_holds(const struct cache *c, const struct cache_block *b)
{
	uint64_t bytes;
	int fd = open_block_file(c, b, &bytes);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool read_exactly_at(int fd, uint64_t at, void *to, size_t n)
{
	return file_read(fd, at, to, n) == (ssize_t)n;
}

static size_t count_crc_pieces(uint64_t bytes)
{
	return (size_t)((bytes + PIECE - 1) / PIECE);
}

/* Reads the tail and the CRCs of the pieces. False: damaged. */
static bool read_block_tail(int fd, uint64_t file_bytes, struct block_check *ret)
{
	struct block_tail *t = &ret->tail;
	uint32_t *crc = ret->crc;
	uint64_t end = file_bytes - sizeof(*t);

	if (file_bytes < sizeof(*t) || !read_exactly_at(fd, end, t, sizeof(*t)) || t->magic != MAGIC || !t->pieces ||
	    t->pieces > PIECES_MAX || count_crc_pieces(t->bytes) != t->pieces ||
	    t->bytes + t->pieces * sizeof(*crc) != end)
		return false;
	return read_exactly_at(fd, t->bytes, crc, t->pieces * sizeof(*crc)) &&
	       crc32c(0, crc, t->pieces * sizeof(*crc)) == t->crc;
}

/* Reads n bytes at `at`. Every piece that overlaps them is read and checked whole. */
static bool read_checked_pieces(int fd, const struct block_check *c, uint64_t at, char *to, size_t n)
{
	char piece[PIECE];

	while (n) {
		size_t number = (size_t)(at / PIECE), skip = (size_t)(at % PIECE);
		uint64_t begin = (uint64_t)number * PIECE;
		size_t whole = (size_t)(c->tail.bytes - begin < PIECE ? c->tail.bytes - begin : PIECE);
		size_t take = n < whole - skip ? n : whole - skip;
		char *into = take == whole ? to : piece;

		if (!read_exactly_at(fd, begin, into, whole) || crc32c(0, into, whole) != c->crc[number])
			return false;
		if (into == piece)
			memcpy(to, piece + skip, take);
		to += take;
		at += take;
		n -= take;
	}
	return true;
}

static void remove_bad_block(struct cache *c, const struct cache_block *b, uint64_t bytes, bool copy)
{
	char path[CACHE_PATH_BYTES];

	make_block_path(c, b, path);
	if (unlink(path))
		return;
	atomic_fetch_sub(&c->shared->used, bytes);
	if (copy)
		atomic_fetch_sub(&c->shared->copies, bytes);
}

bool cache_read(struct cache *c, const struct cache_block *b, uint64_t at, void *to, size_t n)
{
	struct block_check check;
	uint64_t file_bytes;
	int fd = open_block_file(c, b, &file_bytes);
	struct stat st;
	bool whole, copy;

	if (fd < 0)
		return false;
	copy = !fstat(fd, &st) && (st.st_mode & 0777) == CACHE_COPY_MODE;
	whole = read_block_tail(fd, file_bytes, &check) && at + n <= check.tail.bytes &&
		read_checked_pieces(fd, &check, at, to, n);
	close(fd);
	if (!whole)
		remove_bad_block(c, b, file_bytes, copy);
	return whole;
}

/* The lock byte of the block. */
static off_t claim_byte(const struct cache_block *b)
{
	char digits[16];

	memcpy(digits, b->name, 15);
	digits[15] = '\0';
	return (off_t)strtoull(digits, NULL, 16);
}

/* After LOCK_BYTES the lock file has a byte for the hash of each block that was given to cache_keep. It is not mapped,
 * because writing to a mapped hole of a file on a full disk is fatal. */
static off_t find_had_byte(const struct cache *c, const struct cache_block *b)
{
	return LOCK_BYTES + (off_t)((uint64_t)claim_byte(b) % c->had_bytes);
}

bool cache_had(const struct cache *c, const struct cache_block *b)
{
	char had = 0;

	return pread(c->lock_fd, &had, 1, find_had_byte(c, b)) == 1 && had;
}

/* Fails silently where the disk had no room for all marks when the cache was made, and is full now: the block counts as
 * new then. */
static void mark_had_block(struct cache *c, const struct cache_block *b)
{
	const char had = 1;

	(void)!pwrite(c->lock_fd, &had, 1, find_had_byte(c, b));
}

bool cache_claim(struct cache *c, const struct cache_block *b)
{
	return lock_byte(c, claim_byte(b), F_WRLCK, false);
}

void cache_release(struct cache *c, const struct cache_block *b)
{
	lock_byte(c, claim_byte(b), F_UNLCK, false);
}

/* ---- keeping ---- */

/* Creates an unfinished file next to the block folders, where the sweep finds leftovers of killed processes. Private
 * to the user, like the blocks. */
static bool open_unfinished_file(struct cache *c, struct file_whole *ret)
{
	char part[CACHE_PATH_BYTES];

	snprintf(part, sizeof(part), "%.4000s/new-%s-%llu", c->folder, c->writer,
		 (unsigned long long)atomic_fetch_add(&c->numbers, 1));
	return !file_whole_open(ret, part) && !fchmod(ret->fd, 0600);
}

static bool name_block_file(const struct cache *c, struct file_whole *f, const struct cache_block *b)
{
	char path[CACHE_PATH_BYTES];

	snprintf(path, sizeof(path), "%.4000s/%.2s", c->folder, b->name);
	if (mkdir(path, 0700) && errno != EEXIST)
		return false;
	make_block_path(c, b, path);
	return !file_whole_keep(f, path);
}

static bool write_block_file(int fd, const void *bytes, size_t n)
{
	struct block_tail t = { .magic = MAGIC, .bytes = n, .pieces = (uint32_t)count_crc_pieces(n) };
	uint32_t crc[PIECES_MAX];

	for (size_t i = 0; i < t.pieces; i++)
		crc[i] = crc32c(0, (const char *)bytes + i * PIECE, n - i * PIECE < PIECE ? n - i * PIECE : PIECE);
	t.crc = crc32c(0, crc, t.pieces * sizeof(*crc));
	return !file_write(fd, bytes, n) && !file_write(fd, crc, t.pieces * sizeof(*crc)) &&
	       !file_write(fd, &t, sizeof(t));
}

static void note_keep_failure(struct cache *c, int why)
{
	pthread_mutex_lock(&c->mutex);
	if (!c->noticed)
		snprintf(c->notice, sizeof(c->notice), "--cache %.200s: %s: blocks are not cached", c->folder,
			 strerror(why));
	c->noticed = true;
	pthread_mutex_unlock(&c->mutex);
}

static uint64_t block_file_bytes(size_t n)
{
	return n + count_crc_pieces(n) * sizeof(uint32_t) + sizeof(struct block_tail);
}

static bool is_too_full(const struct cache *c, uint64_t more)
{
	return c->most_bytes && c->shared->used + more > c->most_bytes;
}

/* Returns false, with errno, if the block is not stored. */
static bool store_block(struct cache *c, const struct cache_block *b, const void *bytes, size_t n, mode_t mode)
{
	struct file_whole f;
	int why;

	if (open_unfinished_file(c, &f) && write_block_file(f.fd, bytes, n) && !fchmod(f.fd, mode) &&
	    name_block_file(c, &f, b)) {
		atomic_fetch_add(&c->shared->used, block_file_bytes(n));
		return true;
	}
	why = errno;
	file_whole_drop(&f);
	errno = why;
	return false;
}

/* On a full disk: removes copies for a block of this node. Returns false if no copy is left. */
static bool remove_copies(struct cache *c)
{
	bool any;

	if (!lock_byte(c, SWEEP_LOCK, F_WRLCK, true))
		return false;
	any = c->shared->copies > 0;
	if (any) /* half of them, so that a sweep, which visits every file, is rare */
		sweep_to_goal(c, c->shared->used - c->shared->copies / 2 - 1);
	lock_byte(c, SWEEP_LOCK, F_UNLCK, false);
	return any;
}

/* With a limit, no other thread or process stores a block until leave_room: what is_too_full finds stays true. */
static void enter_room(struct cache *c)
{
	if (!c->most_bytes)
		return;
	pthread_mutex_lock(&c->room);
	lock_byte(c, ROOM_LOCK, F_WRLCK, true);
}

static void leave_room(struct cache *c)
{
	if (!c->most_bytes)
		return;
	lock_byte(c, ROOM_LOCK, F_UNLCK, false);
	pthread_mutex_unlock(&c->room);
}

void cache_keep(struct cache *c, const struct cache_block *b, const void *bytes, size_t n)
{
	bool kept = true;

	mark_had_block(c, b);
	if (!n || count_crc_pieces(n) > PIECES_MAX)
		return;
	enter_room(c);
	if (is_too_full(c, block_file_bytes(n)))
		sweep_cache(c, block_file_bytes(n));
	if (!is_too_full(c, block_file_bytes(n)))
		do
			kept = store_block(c, b, bytes, n, 0600);
		while (!kept && (errno == ENOSPC || errno == EDQUOT) && remove_copies(c));
	if (!kept)
		note_keep_failure(c, errno);
	leave_room(c);
}

void cache_keep_copy(struct cache *c, const struct cache_block *b, const void *bytes, size_t n)
{
	const uint64_t more = block_file_bytes(n);

	if (!n || count_crc_pieces(n) > PIECES_MAX || c->copies_end)
		return;
	enter_room(c);
	/* a sweep must find enough copies to be worth its visit of every file */
	if (is_too_full(c, more) && c->shared->copies > c->most_bytes / 16 + more)
		sweep_cache(c, more);
	if (!is_too_full(c, more)) {
		if (store_block(c, b, bytes, n, CACHE_COPY_MODE))
			atomic_fetch_add(&c->shared->copies, more);
		else
			c->copies_end = true;
	}
	leave_room(c);
}

bool cache_notice(struct cache *c, char *ret, size_t bytes)
{
	bool any;

	pthread_mutex_lock(&c->mutex);
	any = c->notice[0];
	snprintf(ret, bytes, "%s", c->notice);
	c->notice[0] = '\0';
	pthread_mutex_unlock(&c->mutex);
	return any;
}
