/* SPDX-License-Identifier: Apache-2.0 */
/* plain.c: plain reading of files, the upper limit for a reader of their samples:
 *   plain evict FILE...       evicts their pages from the page cache, unless they are in use
 *   plain sequential FILE...  reads each from beginning to end, 1 MiB per call, with sequential advice
 *   plain random DEPTH LIST   reads ranges of files in the order of LIST ("OFFSET BYTES FILE" per line; bytes 0: the
 *                             complete file), by DEPTH threads
 * Prints bytes, seconds and seconds of processor time. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CALL_BYTES ((size_t)1 << 20)
#define DEPTH_MAX 256

struct range {
	char *file;
	off_t at;
	size_t n;
	int fd; /* -1: opened by the reading thread */
};

struct job {
	struct range *range;
	int n;
	_Atomic int next;
	_Atomic long long bytes;
	_Atomic bool failed;
};

static double now_s(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool evict(const char *file)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	bool good = fd >= 0 && !fdatasync(fd) && !posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);

	if (fd >= 0)
		close(fd);
	return good;
}

/* Reads up to n bytes at `at`; returns a negative value on an error. */
static long long read_range(int fd, off_t at, size_t n, char *room)
{
	long long sum = 0;

	while (n) {
		ssize_t got = pread(fd, room, n < CALL_BYTES ? n : CALL_BYTES, at);

		if (got < 0)
			return -1;
		if (!got)
			break;
		sum += got;
		at += got;
		n -= (size_t)got;
	}
	return sum;
}

static long long read_file(const char *file, char *room)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	long long sum = -1;

	if (fd < 0)
		return -1;
	posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	sum = read_range(fd, 0, SIZE_MAX, room);
	close(fd);
	return sum;
}

static void *read_some(void *arg)
{
	struct job *j = arg;
	char *room = malloc(CALL_BYTES);
	int i;

	while (room && (i = atomic_fetch_add(&j->next, 1)) < j->n) {
		const struct range *r = &j->range[i];
		int fd = r->fd >= 0 ? r->fd : open(r->file, O_RDONLY | O_CLOEXEC);
		long long got = fd < 0 ? -1 : read_range(fd, r->at, r->n ? r->n : SIZE_MAX, room);

		if (fd >= 0 && r->fd < 0)
			close(fd);
		if (got < 0)
			j->failed = true;
		else
			j->bytes += got;
	}
	if (!room)
		j->failed = true;
	free(room);
	return NULL;
}

/* Files from which ranges are read are opened once. */
static bool take_line(struct job *j, char *line)
{
	struct range r = { .fd = -1 };
	long long at;
	int name = 0;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%lld %zu %n", &at, &r.n, &name) < 2 || !name)
		return false;
	r.at = (off_t)at;
	r.file = strdup(line + name);
	for (int i = j->n - 1; r.n && r.fd < 0 && i >= 0; i--)
		if (!strcmp(j->range[i].file, r.file))
			r.fd = j->range[i].fd;
	if (r.n && r.fd < 0)
		r.fd = open(r.file, O_RDONLY | O_CLOEXEC);
	j->range = realloc(j->range, (size_t)(j->n + 1) * sizeof(*j->range));
	if (!r.file || !j->range)
		return false;
	j->range[j->n++] = r;
	return true;
}

static bool take_list(struct job *j, const char *path)
{
	FILE *f = fopen(path, "re");
	char line[8192];
	bool good = f != NULL;

	while (good && fgets(line, sizeof(line), f))
		good = take_line(j, line);
	if (f)
		fclose(f);
	return good && j->n;
}

static bool read_random(struct job *j, int depth)
{
	pthread_t thread[DEPTH_MAX];
	int n = 0;

	while (n < depth && n < DEPTH_MAX && !pthread_create(&thread[n], NULL, read_some, j))
		n++;
	for (int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	return n == depth && !j->failed;
}

static bool read_all(struct job *j, char **file, int n)
{
	char *room = malloc(CALL_BYTES);

	for (int i = 0; room && i < n; i++) {
		long long got = read_file(file[i], room);

		if (got < 0)
			j->failed = true;
		else
			j->bytes += got;
	}
	free(room);
	return room && !j->failed;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	struct job j = { .n = 0 };
	double began, cpu;
	bool good = true;

	if (!strcmp(what, "evict")) {
		for (int i = 2; i < argc; i++)
			good = evict(argv[i]) && good;
		return !good;
	}
	if (!strcmp(what, "random"))
		good = argc == 4 && take_list(&j, argv[3]);
	else
		good = !strcmp(what, "sequential");
	began = now_s(CLOCK_MONOTONIC);
	cpu = now_s(CLOCK_PROCESS_CPUTIME_ID);
	if (good)
		good = *what == 'r' ? read_random(&j, (int)strtol(argv[2], NULL, 10))
				    : read_all(&j, argv + 2, argc - 2);
	if (!good) {
		fprintf(stderr, "plain evict|sequential FILE...\n");
		return 2;
	}
	printf("%lld %.6f %.6f\n", (long long)j.bytes, now_s(CLOCK_MONOTONIC) - began,
	       now_s(CLOCK_PROCESS_CPUTIME_ID) - cpu);
	return 0;
}
