/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_pick.c: compares the times of candidates and keeps the choices in a text file, one line each: key, tab, name.
 * Lines are appended as a whole, so ranks may share the file. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "trainer/backends/cpu/cpu_pick.h"
#include "tracker/base/file.h"
#include "tracker/mem/mem.h"

#define FILE_BYTES_MAX ((size_t)4 << 20)
#define ROUNDS 2
#define TRIES 3 /* tries per round */
#define HOPELESS 1.5
#define CLOSE 1.15
#define SHORT 1e-3 /* seconds: a run that a cold cache or an interrupt can double */
#define ROUNDS_SHORT 6
#define BUSY 0.7

struct pick_entry {
	struct pick_entry *next;
	char key[PICK_KEY_BYTES];
	char name[PICK_NAME_BYTES];
	bool used;
};

struct cpu_picks {
	struct pick_entry *first;
	char machine[128]; /* start of every key */
	char path[4096];   /* "" if no folder for the file is known */
	char *room;	   /* for trials */
	size_t room_bytes;
};

/* Family, model and name of the processor, spaces turned into underscores. */
static void name_machine(char *text, size_t n)
{
	char brand[49] = "unknown";
	unsigned signature = 0;
	char lib[48];

#if defined(__x86_64__)
	unsigned r[4];

	if (__get_cpuid(1, &r[0], &r[1], &r[2], &r[3]))
		signature = r[0];
	for (unsigned leaf = 0; leaf < 3; leaf++)
		if (__get_cpuid(0x80000002u + leaf, &r[0], &r[1], &r[2], &r[3]))
			memcpy(brand + leaf * 16, r, 16);
	brand[48] = '\0';
#endif
	dnn_version(lib, sizeof(lib));
	snprintf(text, n, "%s/%x/%s", brand, signature, lib);
	for (char *p = text; *p; p++)
		if (*p == ' ' || *p == '\t')
			*p = '_';
}

/* "" when there is no home. */
static void find_picks_path(char *path, size_t n)
{
	const bool home = cache_home(path, n);
	const size_t length = home ? strlen(path) : 0;

	snprintf(path + length, n - length, "%s", home ? "/cpu-picks-13" : "");
}

static struct pick_entry *remember_choice(struct cpu_picks *p, const char *key, const char *name)
{
	struct pick_entry *e = mem_zalloc(sizeof(*e));

	snprintf(e->key, sizeof(e->key), "%s", key);
	snprintf(e->name, sizeof(e->name), "%s", name);
	e->next = p->first;
	p->first = e;
	return e;
}

static void read_picks_file(struct cpu_picks *p)
{
	char line[PICK_KEY_BYTES + PICK_NAME_BYTES + 8];
	FILE *f = p->path[0] ? fopen(p->path, "re") : NULL;
	size_t total = 0, same = strlen(p->machine);

	while (f && total < FILE_BYTES_MAX && fgets(line, sizeof(line), f)) {
		char *tab = strchr(line, '\t'), *end = strchr(line, '\n');

		total += strlen(line);
		if (!tab || !end || strncmp(line, p->machine, same) != 0)
			continue;
		*tab = *end = '\0';
		if (tab[1] && strlen(line) < PICK_KEY_BYTES && strlen(tab + 1) < PICK_NAME_BYTES)
			remember_choice(p, line, tab + 1);
	}
	if (f)
		fclose(f);
}

static void append_picks_file(const struct cpu_picks *p, const char *key, const char *name)
{
	char line[PICK_KEY_BYTES + PICK_NAME_BYTES + 8];
	int n = snprintf(line, sizeof(line), "%s\t%s\n", key, name), fd;

	if (!p->path[0])
		return;
	fd = open(p->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
		return;
	/* the reader skips a line that did not fit on the disk: only the timing is lost */
	if (write(fd, line, (size_t)n) != n)
		errno = 0;
	close(fd);
}

struct cpu_picks *cpu_picks_open(void)
{
	struct cpu_picks *p = mem_zalloc(sizeof(*p));

	name_machine(p->machine, sizeof(p->machine));
	find_picks_path(p->path, sizeof(p->path));
	read_picks_file(p);
	return p;
}

void cpu_picks_free(struct cpu_picks *p)
{
	while (p && p->first) {
		struct pick_entry *e = p->first;

		p->first = e->next;
		free(e);
	}
	if (p)
		cpu_pick_leave(p);
	free(p);
}

char *cpu_pick_room(struct cpu_picks *p, size_t bytes)
{
	const size_t had = p->room_bytes;
	char *room;

	if (bytes <= had)
		return p->room;
	room = had ? mremap(p->room, had, bytes, MREMAP_MAYMOVE)
		   : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (room == MAP_FAILED)
		return NULL;
	p->room = room;
	p->room_bytes = bytes;
	madvise(room, bytes, MADV_HUGEPAGE);
	memset(room + had, PICK_FILL, bytes - had);
	return room;
}

void cpu_pick_leave(struct cpu_picks *p)
{
	if (p->room)
		munmap(p->room, p->room_bytes);
	p->room = NULL;
	p->room_bytes = 0;
}

void cpu_pick_key(char *key, const struct cpu_module *m, int threads, const char *what)
{
	snprintf(key, PICK_KEY_BYTES, "%s %s t%d %s", m->picks->machine, cpu_isa_name(m->isa), threads, what);
}

bool cpu_pick_recall(struct cpu_module *m, const char *key, char *name)
{
	for (struct pick_entry *e = m->picks->first; e; e = e->next)
		if (strcmp(e->key, key) == 0) {
			snprintf(name, PICK_NAME_BYTES, "%s", e->name);
			e->used = true;
			return true;
		}
	return false;
}

void cpu_pick_keep(struct cpu_module *m, const char *key, const char *name)
{
	remember_choice(m->picks, key, name)->used = true;
	append_picks_file(m->picks, key, name);
}

void cpu_pick_choices(void *module, void (*fn)(void *user, const char *key, const char *name), void *user)
{
	const struct cpu_module *m = module;

	for (const struct pick_entry *e = m->picks ? m->picks->first : NULL; e; e = e->next)
		if (e->used)
			fn(user, e->key, e->name);
}

void cpu_pick_choose(void *module, const char *key, const char *name)
{
	struct cpu_module *m = module;

	/* longer ones were written by another version: they are timed again */
	if (m->picks && strlen(key) < PICK_KEY_BYTES && strlen(name) < PICK_NAME_BYTES)
		remember_choice(m->picks, key, name);
}

bool cpu_pick_worth_trying(const struct cpu_module *m, const char *name)
{
	static const char *const parts[] = { "avx512", "avx10", "amx", "gemm" };
	bool wide = false;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		wide = wide || strstr(name, parts[i]);
	return wide || m->isa < CPU_AVX512;
}

/* Returns the involuntary context switches of this process. */
static long count_interruptions(void)
{
	struct rusage u;

	return getrusage(RUSAGE_SELF, &u) ? 0 : u.ru_nivcsw;
}

struct trial_timing {
	double s;
	bool disturbed;
};

static double read_clock_s(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Several threads compute, or wait actively for each other. The run was disturbed if one of them lost its processor, or
 * got none at the start of its share. */
static struct trial_timing time_candidate_once(int i, int threads, double (*run)(void *arg, int i), void *arg)
{
	const long switches = count_interruptions();
	const double wall = read_clock_s(CLOCK_MONOTONIC), cpu = read_clock_s(CLOCK_PROCESS_CPUTIME_ID),
		     s = run(arg, i);
	const double around = read_clock_s(CLOCK_MONOTONIC) - wall - s; /* by one thread */
	const double worked = read_clock_s(CLOCK_PROCESS_CPUTIME_ID) - cpu - around;

	return (struct trial_timing){ s, threads > 1 &&
						 (count_interruptions() != switches || worked < BUSY * threads * s) };
}

/* Returns the first undisturbed of several runs. */
static struct trial_timing time_undisturbed(int i, int threads, double (*run)(void *arg, int i), void *arg)
{
	struct trial_timing t = { PICK_FAILED, threads > 1 };

	for (int try = 0; try < TRIES && (t.disturbed || try == 0); try++) {
		const struct trial_timing now = time_candidate_once(i, threads, run, arg);

		t.s = now.s < t.s ? now.s : t.s;
		t.disturbed = now.disturbed;
	}
	return t;
}

/* Runs each candidate once, to warm memory and code, and a short one once more. Those slower than HOPELESS times the
 * best are not run again; the others are timed later. Returns the seconds of the fastest; infinity if every run was
 * disturbed. */
static double time_first_round(struct trial_timing *first, int n, int threads, double (*run)(void *arg, int i),
			       void *arg)
{
	double quickest = PICK_FAILED;
	bool calm = false;

	for (int i = 0; i < n; i++) {
		first[i] = time_candidate_once(i, threads, run, arg);
		if (first[i].s < SHORT)
			first[i] = time_candidate_once(i, threads, run, arg);
		quickest = first[i].s < quickest ? first[i].s : quickest;
		calm = calm || !first[i].disturbed;
	}
	for (int i = 0; i < n; i++)
		if (first[i].disturbed || first[i].s <= HOPELESS * quickest)
			first[i] = (struct trial_timing){ PICK_FAILED, true };
	return calm ? quickest : INFINITY;
}

/* Times all candidates in rounds, so that a disturbance affects all of them; those that are far slower are dropped. */
bool cpu_pick_fastest(int *best, int n, int threads, double (*run)(void *arg, int i), void *arg)
{
	struct trial_timing least[PICK_CANDIDATES];
	const double quickest = time_first_round(least, n, threads, run, arg);
	const int rounds = quickest < SHORT ? ROUNDS_SHORT : ROUNDS;
	bool clear = true;

	*best = 0;
	if (isinf(quickest))
		return false;
	for (int round = 0; round < rounds; round++)
		for (int i = 0; i < n; i++) {
			struct trial_timing t;

			if (least[i].s < PICK_FAILED && (round == 0 || least[i].s > CLOSE * least[*best].s))
				continue;
			t = time_undisturbed(i, threads, run, arg);
			least[i].s = t.s < least[i].s ? t.s : least[i].s;
			least[i].disturbed = least[i].disturbed && t.disturbed;
			if (least[i].s < least[*best].s)
				*best = i;
		}
	for (int i = 0; i < n; i++)
		clear = clear && !least[i].disturbed;
	return clear;
}

double cpu_pick_clock(int threads)
{
	return read_clock_s(threads > 1 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID);
}
