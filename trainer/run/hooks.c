/* hooks.c: reads the test hooks from the environment. */
#include "trainer/run/hooks.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>


static void read_death(struct hooks *h, const char *die)
{
	const char *step = strchr(die, ':');
	char *end;

	if (!step)
		return;
	h->die_rank = strncmp(die, "launcher", 8) ? (int)strtol(die, NULL, 10) : -1;
	h->die_step = strtoll(step + 1, &end, 10);
	h->die_signal = *end == ':' ? (int)strtol(end + 1, NULL, 10) : SIGKILL;
}

struct hooks hooks_read(int rank)
{
	const char *slow = getenv("DPTRAIN_TEST_SLOW_RANK"), *loader = getenv("DPTRAIN_TEST_SLOW_LOADER");
	const char *die = getenv("DPTRAIN_TEST_DIE"), *copy = getenv("DPTRAIN_TEST_SLOW_COPY");
	struct hooks h = { .die_step = 0 };
	char *end;

	if (slow && strtol(slow, &end, 10) == rank && *end == ':')
		h.slow_step_s = strtod(end + 1, NULL) / 1000;
	if (copy)
		h.slow_copy_s = strtod(copy, NULL) / 1000;
	if (loader)
		h.slow_batch_s = strtod(loader, NULL) / 1000;
	if (die)
		read_death(&h, die);
	return h;
}

double hooks_pace(void)
{
	const char *pace = getenv("DPTRAIN_TEST_PACE");

	return pace ? strtod(pace, NULL) : 0;
}

double hooks_slow(double seconds)
{
	double start = clock_mono_s();

	if (seconds <= 0)
		return 0;
	clock_sleep_s(seconds);
	return clock_mono_s() - start;
}

void hooks_spin(const struct clock_hook *c, double start_s)
{
	double now = clock_mono_s(), until = start_s + c->factor * (now - start_s);

	while (now >= c->from_s && now < until)
		now = clock_mono_s();
}

bool hooks_spoils(const struct node *n, int rank)
{
	const char *hook = getenv("DPTRAIN_TEST_NAN");
	char *end;

	return hook && strtol(hook, &end, 10) == rank && *end == ':' && !strcmp(end + 1, n->name);
}

void hooks_spoil(const struct node *n, const struct kernel_args *args)
{
	const int64_t last = shape_count(&n->out[0]->shape) - 1;

	if (n->out[0]->dtype == DTYPE_F32)
		((float *)args->out[0])[last] = NAN;
	else if (n->out[0]->dtype == DTYPE_F64)
		((double *)args->out[0])[last] = NAN;
}

void hooks_after_step(const struct hooks *h, const struct rank_context *seat, int64_t step)
{
	if (h->die_step != step)
		return;
	if (h->die_rank == seat->rank)
		raise(h->die_signal);
	if (h->die_rank < 0 && seat->rank == 0)
		kill(getppid(), h->die_signal);
}
