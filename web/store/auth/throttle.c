/* throttle.c: counts wrong guesses per address; the count decays at a fixed rate. */
#include "web/store/auth/throttle.h"

#define AT_ONCE 10.0
#define FORGET_S 5.0

static unsigned throttle_slot(const struct throttle *t, uint64_t from)
{
	uint64_t h = (from ^ t->seed) * UINT64_C(0x9e3779b97f4a7c15);

	h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return (unsigned)((h ^ h >> 32) % THROTTLE_PLACES);
}

static double failures_now(struct throttle *t, unsigned place, double now_s)
{
	double left = t->places[place].wrong - (now_s - t->places[place].at_s) / FORGET_S;

	return left > 0 ? left : 0;
}

int throttle_wait_s(struct throttle *t, uint64_t from, double now_s)
{
	double over = failures_now(t, throttle_slot(t, from), now_s) - (AT_ONCE - 1);

	return over > 0 ? (int)(over * FORGET_S + 0.999) : 0;
}

void throttle_wrong(struct throttle *t, uint64_t from, double now_s)
{
	unsigned place = throttle_slot(t, from);
	double wrong = failures_now(t, place, now_s) + 1;

	t->places[place].wrong = wrong < AT_ONCE ? wrong : AT_ONCE;
	t->places[place].at_s = now_s;
}
