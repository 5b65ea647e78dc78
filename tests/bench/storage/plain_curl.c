/* SPDX-License-Identifier: Apache-2.0 */
/* plain_curl.c: objects on a server fetched by bare libcurl, the upper limit for a reader: in ranges of 8 MiB, 16 at
 * once, into buffers that are reused.
 *   plain_curl PASSES [URL BYTES]...
 * Prints bytes, seconds and seconds of processor time of all passes after the first, or of the only one. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tracker/curl/curlso.h"

#define RANGE ((size_t)8 << 20)
#define AT_ONCE 16

struct slot {
	void *easy;
	char *room;
	size_t got;
	bool busy;
};

struct job {
	struct curlso so;
	void *multi;
	char **pair; /* "URL", "BYTES" */
	int n, at;   /* number of pairs; the current one */
	long long begin, bytes;
	struct slot slot[AT_ONCE];
};

static double now_s(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static size_t take(char *bytes, size_t size, size_t n, void *user)
{
	struct slot *s = user;

	n *= size;
	if (s->got + n > RANGE)
		return 0;
	memcpy(s->room + s->got, bytes, n);
	s->got += n;
	return n;
}

/* Does nothing if all ranges are requested. */
static void ask(struct job *j, struct slot *s)
{
	long long size = j->at < j->n ? strtoll(j->pair[2 * j->at + 1], NULL, 10) : 0;
	long long end = j->begin + (long long)RANGE;
	char range[64];

	if (j->at == j->n)
		return;
	snprintf(range, sizeof(range), "%lld-%lld", j->begin, (end < size ? end : size) - 1);
	s->got = 0;
	s->busy = true;
	j->so.easy_setopt(s->easy, CURLSO_URL, j->pair[2 * j->at]);
	j->so.easy_setopt(s->easy, CURLSO_RANGE, range);
	j->so.easy_setopt(s->easy, CURLSO_BUFFERSIZE, 256L << 10);
	j->so.easy_setopt(s->easy, CURLSO_WRITEFUNCTION, take);
	j->so.easy_setopt(s->easy, CURLSO_WRITEDATA, s);
	j->so.multi_add_handle(j->multi, s->easy);
	j->begin = end < size ? end : 0;
	j->at += end >= size;
}

static bool finish(struct job *j)
{
	const struct curlso_message *m;
	int left;

	while ((m = j->so.multi_info_read(j->multi, &left)))
		for (int i = 0; i < AT_ONCE; i++) {
			struct slot *s = &j->slot[i];

			if (s->easy != m->easy)
				continue;
			if (m->result.code)
				return false;
			s->busy = false;
			j->bytes += (long long)s->got;
			j->so.multi_remove_handle(j->multi, s->easy);
			ask(j, s);
			break;
		}
	return true;
}

static bool ready(struct job *j)
{
	j->multi = j->so.multi_init();
	for (int i = 0; i < AT_ONCE; i++) {
		j->slot[i].easy = j->so.easy_init();
		j->slot[i].room = malloc(RANGE);
		if (!j->slot[i].easy || !j->slot[i].room)
			return false;
	}
	return j->multi != NULL;
}

static bool fetch(struct job *j)
{
	int running = 1;

	j->at = 0;
	j->begin = 0;
	for (int i = 0; i < AT_ONCE; i++)
		ask(j, &j->slot[i]);
	while (running) {
		j->so.multi_perform(j->multi, &running);
		if (!finish(j))
			return false;
		running = 0;
		for (int i = 0; i < AT_ONCE; i++)
			running += j->slot[i].busy;
		if (running)
			j->so.multi_poll(j->multi, NULL, 0, 100, NULL);
	}
	return true;
}

int main(int argc, char **argv)
{
	struct job j = { .pair = argv + 2, .n = (argc - 2) / 2 };
	struct err err = ERR_INIT;
	double began = 0, cpu = 0;
	bool done;

	if (j.n < 1 || curlso_load(&j.so, &err) || !j.so.multi_init) {
		fprintf(stderr, "plain_curl PASSES [URL BYTES]...: %s\n", err.text);
		return 2;
	}
	done = ready(&j);
	for (long i = 0, passes = strtol(argv[1], NULL, 10); done && i < passes; i++) {
		if (i < 2) {
			j.bytes = 0;
			began = now_s(CLOCK_MONOTONIC);
			cpu = now_s(CLOCK_PROCESS_CPUTIME_ID);
		}
		done = fetch(&j);
	}
	if (!done) {
		fprintf(stderr, "plain_curl: an object cannot be fetched\n");
		return 2;
	}
	printf("%lld %.6f %.6f\n", j.bytes, now_s(CLOCK_MONOTONIC) - began, now_s(CLOCK_PROCESS_CPUTIME_ID) - cpu);
	return 0;
}
