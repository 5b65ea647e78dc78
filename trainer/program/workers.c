/* workers.c: raises the number of threads while steps become faster. */
#include "trainer/program/workers.h"

#define LITTLE 0.02 /* share of time: less waiting is not worth a thread */
#define GAIN 0.03   /* share of time that a number must win to be kept, or lose to end the search */
/* the search ends after that many numbers in a row without gain: the first of many threads gains little */
#define IN_VAIN 3

void workers_init(struct workers *s, int most)
{
	*s = (struct workers){ .most = most, .done = most < 1 };
}

static void begin_window(struct workers *s, int n)
{
	s->n = n;
	s->seen = 0;
	s->wait_s = s->all_s = s->longest_s = 0;
}

static int next_worker_count(const struct workers *s)
{
	int n = s->n ? 2 * s->n : 1;

	return n < s->most ? n : s->most;
}

static void judge_worker_count(struct workers *s, double batch_s, double wait_share)
{
	bool better = !s->any || batch_s < s->best_s * (1 - GAIN), worse = s->any && batch_s > s->best_s * (1 + GAIN);

	if (better) {
		s->any = true;
		s->best = s->n;
		s->best_s = batch_s;
		s->wait_share = wait_share;
	}
	s->in_vain = better ? 0 : s->in_vain + 1;
	s->done = worse || s->in_vain == IN_VAIN || wait_share < LITTLE || s->n == s->most;
	begin_window(s, s->done ? s->best : next_worker_count(s));
}

/* Ignores the longest batch of a window: something else may have delayed it (a checkpoint, another program). */
bool workers_batch(struct workers *s, double wait_s, double all_s)
{
	if (s->done || ++s->seen <= WORKERS_SKIPPED)
		return false;
	s->wait_s += wait_s;
	s->all_s += all_s;
	s->longest_s = all_s > s->longest_s ? all_s : s->longest_s;
	if (s->seen < WORKERS_SKIPPED + WORKERS_WINDOW)
		return false;
	judge_worker_count(s, (s->all_s - s->longest_s) / (WORKERS_WINDOW - 1),
			   s->all_s > 0 ? s->wait_s / s->all_s : 0);
	return true;
}
