/* pick.c: times the candidates for a convolution on buffers that the caches no longer hold, and keeps the choices in
 * a text file, one line each: key, tab, name. Lines are appended whole, so ranks may share the file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "trainer/backends/cpu/conv.h"
#include "trainer/backends/cpu/pick.h"

#define KEY_BYTES 256
#define FILE_BYTES_MAX ((size_t)4 << 20)
#define CANDIDATES 8
#define ROUNDS 2
#define TRIAL_FLOPS 1.5e9 /* of one timed run, about: a part of a large batch tells as much as the whole */

struct pick_entry {
	struct pick_entry *next;
	char key[KEY_BYTES];
	char name[PICK_NAME_BYTES];
};

struct cpu_picks {
	struct pick_entry *first;
	char machine[128]; /* start of every key */
	char path[4096];   /* "" when there is no place for the file */
};

/* Family, model and name of the processor, spaces turned into underscores. */
static void machine_name(char *text, size_t n)
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

/* Makes the folder on the way; "" when there is no home. */
static void file_path(char *path, size_t n)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int len = 0;

	path[0] = '\0';
	if (xdg && xdg[0] == '/')
		len = snprintf(path, n, "%s", xdg);
	else if (home && home[0] == '/')
		len = snprintf(path, n, "%s/.cache", home);
	if (len <= 0 || (size_t)len + 32 > n) {
		path[0] = '\0';
		return;
	}
	mkdir(path, 0755);
	snprintf(path + len, n - (size_t)len, "/dptrain");
	mkdir(path, 0755);
	snprintf(path + len, n - (size_t)len, "/dptrain/cpu-picks");
}

static void remember(struct cpu_picks *p, const char *key, const char *name)
{
	struct pick_entry *e = calloc(1, sizeof(*e));

	if (!e)
		return;
	snprintf(e->key, sizeof(e->key), "%s", key);
	snprintf(e->name, sizeof(e->name), "%s", name);
	e->next = p->first;
	p->first = e;
}

static void file_read(struct cpu_picks *p)
{
	char line[KEY_BYTES + PICK_NAME_BYTES + 8];
	FILE *f = p->path[0] ? fopen(p->path, "re") : NULL;
	size_t total = 0, same = strlen(p->machine);

	while (f && total < FILE_BYTES_MAX && fgets(line, sizeof(line), f)) {
		char *tab = strchr(line, '\t'), *end = strchr(line, '\n');

		total += strlen(line);
		if (!tab || !end || strncmp(line, p->machine, same) != 0)
			continue;
		*tab = *end = '\0';
		if (tab[1] && strlen(line) < KEY_BYTES && strlen(tab + 1) < PICK_NAME_BYTES)
			remember(p, line, tab + 1);
	}
	if (f)
		fclose(f);
}

static void file_append(const struct cpu_picks *p, const char *key, const char *name)
{
	char line[KEY_BYTES + PICK_NAME_BYTES + 8];
	int n = snprintf(line, sizeof(line), "%s\t%s\n", key, name), fd;

	if (!p->path[0])
		return;
	fd = open(p->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
		return;
	/* a line that did not fit on the disk is skipped by the reader; nothing is lost but the timing */
	if (write(fd, line, (size_t)n) != n)
		errno = 0;
	close(fd);
}

struct cpu_picks *cpu_picks_open(void)
{
	struct cpu_picks *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	machine_name(p->machine, sizeof(p->machine));
	file_path(p->path, sizeof(p->path));
	file_read(p);
	return p;
}

void cpu_picks_free(struct cpu_picks *p)
{
	while (p && p->first) {
		struct pick_entry *e = p->first;

		p->first = e->next;
		free(e);
	}
	free(p);
}

static void key_of(char *key, size_t n, const struct cpu_module *m, const struct dnn_conv_spec *s, int threads)
{
	static const char *const passes[] = { "fwd", "dgrad", "wgrad" };

	snprintf(key, n, "%s %s t%d %s %s %lldx%lldx%lldx%lld k%lld r%lld s%lld p%lld", m->picks->machine,
		 cpu_isa_name(m->isa), threads, passes[s->pass], s->bf16 ? "bf16" : "f32", (long long)s->n,
		 (long long)s->h, (long long)s->w, (long long)s->c, (long long)s->k, (long long)s->kernel,
		 (long long)s->stride, (long long)s->pad);
}

/* Buffers of one convolution, filled so that nothing in them is denormal or infinite. */
struct trial {
	char *memory;
	size_t bytes, a, b, out, workspace, flush;
};

#define FLUSH_BYTES ((size_t)8 << 20) /* more than the private caches hold */

static size_t up(size_t bytes)
{
	return (bytes + 4095) / 4096 * 4096;
}

static int trial_open(struct trial *t, const struct dnn_conv_spec *s, size_t packed, size_t workspace)
{
	size_t item = s->bf16 ? 2 : 4;
	size_t x = up((size_t)(s->n * s->h * s->w * s->c) * item), y = up((size_t)(s->n * s->p * s->q * s->k) * item);
	size_t w = up((size_t)(s->k * s->kernel * s->kernel * s->c) * 4);

	packed = up(packed > w ? packed : w);
	t->a = 0;
	t->b = s->pass == DNN_DGRAD ? y : x;
	t->out = t->b + (s->pass == DNN_WGRAD ? y : packed);
	t->workspace = t->out + (s->pass == DNN_FORWARD ? y : s->pass == DNN_DGRAD ? x : packed);
	t->flush = t->workspace + up(workspace);
	t->bytes = t->flush + FLUSH_BYTES;
	t->memory = mmap(NULL, t->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (t->memory == MAP_FAILED)
		return -1;
	madvise(t->memory, t->bytes, MADV_HUGEPAGE);
	memset(t->memory, 0x3c, t->bytes); /* 0x3c3c: 0.0115 in either type */
	return 0;
}

/* With one thread its own processor time, which other programs on the machine disturb less. */
static double run_once(struct cpu_conv *c, struct trial *t, int threads)
{
	const clockid_t clock = threads > 1 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
	const struct dnn_conv_args args = { t->memory + t->a, t->memory + t->b, t->memory + t->out,
					    t->memory + t->workspace };
	struct timespec t0, t1;
	struct err err = ERR_INIT;

	memset(t->memory + t->flush, 0x3c, FLUSH_BYTES);
	clock_gettime(clock, &t0);
	if (cpu_conv_run(c, &args, &err))
		return 1e9;
	clock_gettime(clock, &t1);
	return (double)(t1.tv_sec - t0.tv_sec) + 1e-9 * (double)(t1.tv_nsec - t0.tv_nsec);
}

struct candidate {
	char name[PICK_NAME_BYTES];
	struct cpu_conv *conv;
	double best_s;
};

/* Those made for a lesser instruction set than the machine's lose always and by far. */
static bool worth_trying(const struct cpu_module *m, const char *name)
{
	return m->isa < CPU_AVX512 || strstr(name, "avx512") || strstr(name, "gemm");
}

static int candidates(struct candidate *list, struct cpu_module *m, const struct dnn_conv_spec *spec, int threads)
{
	int n = 0;

	if (cpu_conv_own(m, spec)) {
		snprintf(list[n].name, sizeof(list[n].name), "own");
		n += cpu_conv_make(&list[n].conv, m, spec, threads, list[n].name, NULL) == 0;
	}
	for (int i = 0; n < CANDIDATES; i++) {
		bool again = false;

		if (!dnn_conv_candidate(m->dnn, spec, i, list[n].name, sizeof(list[n].name)))
			break;
		for (int j = 0; j < n; j++)
			again = again || strcmp(list[j].name, list[n].name) == 0;
		if (!again && worth_trying(m, list[n].name))
			n += cpu_conv_make(&list[n].conv, m, spec, threads, list[n].name, NULL) == 0;
	}
	return n;
}

/* Rounds over all candidates, so that a disturbance hits each alike; who is far behind drops out. */
static int fastest(struct candidate *list, int n, struct trial *t, int threads)
{
	int best = 0;

	for (int i = 0; i < n; i++)
		list[i].best_s = 1e9;
	for (int round = 0; round <= ROUNDS; round++)
		for (int i = 0; i < n; i++) {
			double s;

			if (round > 1 && list[i].best_s > 1.3 * list[best].best_s)
				continue;
			s = run_once(list[i].conv, t, threads);
			if (round > 0 && s < list[i].best_s) /* the first touches memory and code */
				list[i].best_s = s;
			if (list[i].best_s < list[best].best_s)
				best = i;
		}
	return best;
}

static void time_candidates(struct cpu_module *m, const struct dnn_conv_spec *spec, int threads, char *name)
{
	struct candidate list[CANDIDATES + 1];
	struct trial t;
	size_t packed = 0, workspace = 0;
	int n;

	memset(list, 0, sizeof(list));
	n = candidates(list, m, spec, threads);
	for (int i = 0; i < n; i++) {
		size_t p = cpu_conv_packed_bytes(list[i].conv), w = cpu_conv_workspace_bytes(list[i].conv);

		packed = p > packed ? p : packed;
		workspace = w > workspace ? w : workspace;
	}
	if (n > 0)
		snprintf(name, PICK_NAME_BYTES, "%s", list[0].name);
	if (n > 1 && trial_open(&t, spec, packed, workspace) == 0) {
		snprintf(name, PICK_NAME_BYTES, "%s", list[fastest(list, n, &t, threads)].name);
		munmap(t.memory, t.bytes);
	}
	for (int i = 0; i < n; i++)
		cpu_conv_free(list[i].conv);
}

static bool recall(const struct cpu_module *m, const char *key, char *name)
{
	for (const struct pick_entry *e = m->picks->first; e; e = e->next)
		if (strcmp(e->key, key) == 0) {
			snprintf(name, PICK_NAME_BYTES, "%s", e->name);
			return true;
		}
	return false;
}

/* Batch sizes near one another share a choice, and large ones are timed in part. */
static int64_t trial_batch(const struct dnn_conv_spec *s, int threads)
{
	double image = 2.0 * (double)(s->p * s->q * s->k) * (double)(s->kernel * s->kernel * s->c);
	int64_t most = (int64_t)(TRIAL_FLOPS / (image > 1 ? image : 1)), n = 1;

	if (most < 2 * (int64_t)threads)
		most = 2 * (int64_t)threads;
	while (n < s->n && 2 * n <= most)
		n *= 2;
	return n;
}

/* What timing found on processors with AVX-512, as rules: the part of a name to look for first; NULL: the library's
 * own order is as good. */
static const char *rule(const struct dnn_conv_spec *s)
{
	int64_t thin = s->c < s->k ? s->c : s->k;

	if (s->pass == DNN_WGRAD)
		return s->kernel == 1 && thin >= 64 ? "gemm" : NULL;
	if (s->pass == DNN_FORWARD && s->kernel == 3 && (s->bf16 || thin <= 32) && s->stride == 1)
		return s->bf16 ? "jit_bf16:" : "jit:";
	return NULL;
}

static void pick_by_rule(struct cpu_module *m, const struct dnn_conv_spec *spec, char *name)
{
	const char *part = m->isa >= CPU_AVX512 ? rule(spec) : NULL;

	name[0] = '\0';
	if (cpu_conv_own(m, spec) && spec->kernel == 3) {
		snprintf(name, PICK_NAME_BYTES, "own");
		return;
	}
	for (int i = 0; part && dnn_conv_candidate(m->dnn, spec, i, name, PICK_NAME_BYTES); i++)
		if (strstr(name, part))
			return;
	name[0] = '\0';
}

void cpu_pick(struct cpu_module *m, const struct dnn_conv_spec *spec, int threads, char *name)
{
	struct dnn_conv_spec trial = *spec;
	char key[KEY_BYTES];

	if (m->deterministic || !m->picks) {
		pick_by_rule(m, spec, name);
		return;
	}
	trial.n = trial_batch(spec, threads);
	name[0] = '\0';
	key_of(key, sizeof(key), m, &trial, threads);
	if (recall(m, key, name))
		return;
	time_candidates(m, &trial, threads, name);
	remember(m->picks, key, name);
	file_append(m->picks, key, name);
}
