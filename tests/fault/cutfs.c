/* SPDX-License-Identifier: Apache-2.0 */
/* cutfs.c: files as their synced content and a list of later changes. */
#include "tests/fault/cutfs.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECTOR 512
#define MAX_FILES 16

struct change {
	int64_t offset; /* a truncation to this length if bytes is NULL */
	unsigned char *bytes;
	size_t n;
	struct change *next;
};

struct image {
	char path[PATH_MAX];
	unsigned char *synced;
	size_t len;
	struct change *first, **last;
	bool entry; /* its name is on disk */
	bool used;
};

struct cut_file {
	sqlite3_file base;
	struct image *image; /* NULL: not watched */
	sqlite3_file *real;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sqlite3_vfs *under;
static struct image images[MAX_FILES];
static char watched[PATH_MAX], target[PATH_MAX];
static uint64_t operations_left, sync_count;
static unsigned keep_percent, dice;
static bool is_cut;

static void forget_changes(struct image *m)
{
	struct change *c, *next;

	for (c = m->first; c; c = next) {
		next = c->next;
		free(c->bytes);
		free(c);
	}
	m->first = NULL;
	m->last = &m->first;
}

static void apply(unsigned char **bytes, size_t *len, int64_t offset, const unsigned char *from, size_t n)
{
	size_t end = (size_t)offset + n;

	if (!from) {
		if ((size_t)offset < *len)
			*len = (size_t)offset;
		return;
	}
	if (end > *len) {
		*bytes = realloc(*bytes, end);
		if (!*bytes)
			abort();
		memset(*bytes + *len, 0, end - *len);
		*len = end;
	}
	memcpy(*bytes + offset, from, n);
}

static bool arrives(void)
{
	return (unsigned)(rand_r(&dice) % 100) < keep_percent;
}

static void write_state(struct image *m)
{
	char path[PATH_MAX * 2];
	unsigned char *bytes = malloc(m->len + 1);
	size_t len = m->len, at, part;
	struct change *c;
	FILE *f;

	if (!bytes)
		abort();
	if (m->len)
		memcpy(bytes, m->synced, m->len);
	for (c = m->first; c; c = c->next) {
		if (!c->bytes && arrives())
			apply(&bytes, &len, c->offset, NULL, 0);
		for (at = 0; c->bytes && at < c->n; at += part) {
			part = SECTOR - (size_t)(c->offset + (int64_t)at) % SECTOR;
			part = part < c->n - at ? part : c->n - at;
			if (arrives())
				apply(&bytes, &len, c->offset + (int64_t)at, c->bytes + at, part);
		}
	}
	snprintf(path, sizeof path, "%s%s", target, m->path + strlen(watched));
	f = fopen(path, "w");
	if (!f || fwrite(bytes, 1, len, f) != len || fclose(f))
		abort();
	free(bytes);
}

static void cut_locked(void)
{
	int i;

	if (is_cut)
		return;
	is_cut = true;
	for (i = 0; i < MAX_FILES; i++)
		if (images[i].used && (images[i].entry || arrives()))
			write_state(&images[i]);
}

/* Whether there is still power. */
static bool spend(void)
{
	if (!is_cut && operations_left-- == 0)
		cut_locked();
	return !is_cut;
}

static struct image *image_of(const char *path)
{
	struct image *m = NULL;
	FILE *f;
	int i;

	if (!path || !*watched || strncmp(path, watched, strlen(watched)) || strstr(path, "-shm"))
		return NULL;
	for (i = 0; i < MAX_FILES; i++)
		if (images[i].used && !strcmp(images[i].path, path))
			return &images[i];
	for (i = 0; i < MAX_FILES && !m; i++)
		m = images[i].used ? NULL : &images[i];
	if (!m)
		abort();
	memset(m, 0, sizeof *m);
	m->used = true;
	m->last = &m->first;
	snprintf(m->path, sizeof m->path, "%s", path);
	f = fopen(path, "r");
	if (f) {
		fseek(f, 0, SEEK_END);
		m->len = (size_t)ftell(f);
		rewind(f);
		m->synced = malloc(m->len + 1);
		if (!m->synced || fread(m->synced, 1, m->len, f) != m->len)
			abort();
		fclose(f);
		m->entry = m->len > 0;
	}
	return m;
}

static void remember(struct image *m, int64_t offset, const void *bytes, size_t n)
{
	struct change *c = calloc(1, sizeof *c);

	if (!c)
		abort();
	c->offset = offset;
	c->n = n;
	if (bytes) {
		c->bytes = malloc(n ? n : 1);
		if (!c->bytes)
			abort();
		memcpy(c->bytes, bytes, n);
	}
	*m->last = c;
	m->last = &c->next;
}

static void settle(struct image *m)
{
	struct change *c;
	int i;

	for (c = m->first; c; c = c->next)
		apply(&m->synced, &m->len, c->offset, c->bytes, c->n);
	forget_changes(m);
	/* SQLite syncs the folder with the first sync of a new log, and all files are in one folder. */
	for (i = 0; i < MAX_FILES; i++)
		images[i].entry = images[i].entry || (images[i].used && (&images[i] == m || strstr(m->path, "-wal")));
}

static struct cut_file *mine(sqlite3_file *f)
{
	return (struct cut_file *)(void *)f;
}

static int cut_close(sqlite3_file *f)
{
	int rc = mine(f)->real->pMethods->xClose(mine(f)->real);

	sqlite3_free(mine(f)->real);
	return rc;
}

static int cut_read(sqlite3_file *f, void *to, int n, sqlite3_int64 at)
{
	return mine(f)->real->pMethods->xRead(mine(f)->real, to, n, at);
}

static int cut_write(sqlite3_file *f, const void *from, int n, sqlite3_int64 at)
{
	struct cut_file *c = mine(f);
	int rc = SQLITE_IOERR_WRITE;

	if (!c->image)
		return c->real->pMethods->xWrite(c->real, from, n, at);
	pthread_mutex_lock(&lock);
	if (spend()) {
		rc = c->real->pMethods->xWrite(c->real, from, n, at);
		if (rc == SQLITE_OK)
			remember(c->image, at, from, (size_t)n);
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

static int cut_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	struct cut_file *c = mine(f);
	int rc = SQLITE_IOERR_TRUNCATE;

	if (!c->image)
		return c->real->pMethods->xTruncate(c->real, size);
	pthread_mutex_lock(&lock);
	if (spend()) {
		rc = c->real->pMethods->xTruncate(c->real, size);
		if (rc == SQLITE_OK)
			remember(c->image, size, NULL, 0);
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

/* The real sync is skipped: only the image counts. */
static int cut_sync(sqlite3_file *f, int flags)
{
	struct cut_file *c = mine(f);
	int rc = SQLITE_IOERR_FSYNC;

	if (!c->image)
		return c->real->pMethods->xSync(c->real, flags);
	pthread_mutex_lock(&lock);
	if (spend()) {
		sync_count++;
		settle(c->image);
		rc = SQLITE_OK;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

static int cut_size(sqlite3_file *f, sqlite3_int64 *ret)
{
	return mine(f)->real->pMethods->xFileSize(mine(f)->real, ret);
}

static int cut_lock(sqlite3_file *f, int level)
{
	return mine(f)->real->pMethods->xLock(mine(f)->real, level);
}

static int cut_unlock(sqlite3_file *f, int level)
{
	return mine(f)->real->pMethods->xUnlock(mine(f)->real, level);
}

static int cut_reserved(sqlite3_file *f, int *ret)
{
	return mine(f)->real->pMethods->xCheckReservedLock(mine(f)->real, ret);
}

static int cut_control(sqlite3_file *f, int op, void *arg)
{
	return mine(f)->real->pMethods->xFileControl(mine(f)->real, op, arg);
}

static int cut_sector(sqlite3_file *f)
{
	return mine(f)->real->pMethods->xSectorSize(mine(f)->real);
}

static int cut_device(sqlite3_file *f)
{
	return mine(f)->real->pMethods->xDeviceCharacteristics(mine(f)->real);
}

static int cut_shm_map(sqlite3_file *f, int page, int bytes, int extend, void volatile **ret)
{
	return mine(f)->real->pMethods->xShmMap(mine(f)->real, page, bytes, extend, ret);
}

static int cut_shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
	return mine(f)->real->pMethods->xShmLock(mine(f)->real, offset, n, flags);
}

static void cut_shm_barrier(sqlite3_file *f)
{
	mine(f)->real->pMethods->xShmBarrier(mine(f)->real);
}

static int cut_shm_unmap(sqlite3_file *f, int remove)
{
	return mine(f)->real->pMethods->xShmUnmap(mine(f)->real, remove);
}

static const sqlite3_io_methods methods = {
	.iVersion = 2, .xClose = cut_close, .xRead = cut_read, .xWrite = cut_write, .xTruncate = cut_truncate,
	.xSync = cut_sync, .xFileSize = cut_size, .xLock = cut_lock, .xUnlock = cut_unlock,
	.xCheckReservedLock = cut_reserved, .xFileControl = cut_control, .xSectorSize = cut_sector,
	.xDeviceCharacteristics = cut_device, .xShmMap = cut_shm_map, .xShmLock = cut_shm_lock,
	.xShmBarrier = cut_shm_barrier, .xShmUnmap = cut_shm_unmap,
};

static int cut_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *ret_flags)
{
	struct cut_file *c = mine(f);
	int rc;

	(void)v;
	memset(c, 0, sizeof *c);
	pthread_mutex_lock(&lock);
	c->image = image_of(name);
	pthread_mutex_unlock(&lock);
	c->real = sqlite3_malloc(under->szOsFile);
	if (!c->real)
		return SQLITE_NOMEM;
	memset(c->real, 0, (size_t)under->szOsFile);
	rc = under->xOpen(under, name, c->real, flags, ret_flags);
	if (c->real->pMethods)
		c->base.pMethods = &methods;
	else
		sqlite3_free(c->real);
	return rc;
}

static int cut_delete(sqlite3_vfs *v, const char *name, int sync_folder)
{
	struct image *m;
	int rc = SQLITE_IOERR_DELETE;

	(void)v;
	pthread_mutex_lock(&lock);
	m = image_of(name);
	if (!m || spend()) {
		rc = under->xDelete(under, name, sync_folder);
		/* Deleted, or, if the folder was not synced, present with its last content: both are legal. */
		if (m && (sync_folder || !arrives())) {
			forget_changes(m);
			free(m->synced);
			memset(m, 0, sizeof *m);
		}
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

static int ignore_synchronous(void *arg, int action, const char *a, const char *b, const char *c, const char *d)
{
	(void)arg;
	(void)b;
	(void)c;
	(void)d;
	return action == SQLITE_PRAGMA && a && !strcmp(a, "synchronous") ? SQLITE_IGNORE : SQLITE_OK;
}

static int relax(sqlite3 *h, char **err, const struct sqlite3_api_routines *api)
{
	(void)err;
	(void)api;
	sqlite3_exec(h, "PRAGMA synchronous = NORMAL", NULL, NULL, NULL);
	return sqlite3_set_authorizer(h, ignore_synchronous, NULL);
}

int cutfs_install(bool relaxed)
{
	static sqlite3_vfs v;

	if (!under) {
		under = sqlite3_vfs_find(NULL);
		v = *under;
		v.zName = "cutfs";
		v.szOsFile = (int)sizeof(struct cut_file);
		v.pNext = NULL;
		v.xOpen = cut_open;
		v.xDelete = cut_delete;
		if (sqlite3_vfs_register(&v, 1) != SQLITE_OK)
			return -1;
	}
	sqlite3_reset_auto_extension();
	return relaxed ? sqlite3_auto_extension((void (*)(void))relax) : 0;
}

void cutfs_arm(const char *folder, const char *to, uint64_t operations, unsigned keep, unsigned seed)
{
	int i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < MAX_FILES; i++) {
		if (images[i].used)
			forget_changes(&images[i]);
		free(images[i].synced);
		memset(&images[i], 0, sizeof images[i]);
	}
	snprintf(watched, sizeof watched, "%s", folder);
	snprintf(target, sizeof target, "%s", to);
	operations_left = operations;
	keep_percent = keep;
	dice = seed;
	is_cut = false;
	pthread_mutex_unlock(&lock);
}

bool cutfs_is_cut(void)
{
	bool cut;

	pthread_mutex_lock(&lock);
	cut = is_cut;
	pthread_mutex_unlock(&lock);
	return cut;
}

void cutfs_cut(void)
{
	pthread_mutex_lock(&lock);
	cut_locked();
	pthread_mutex_unlock(&lock);
}

uint64_t cutfs_syncs(void)
{
	uint64_t n;

	pthread_mutex_lock(&lock);
	n = sync_count;
	pthread_mutex_unlock(&lock);
	return n;
}
