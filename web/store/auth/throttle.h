/* throttle.h: how often somebody may guess wrong: ten times at once, then once every five seconds. Memory is constant:
 * addresses share a fixed number of places, by a hash that outsiders cannot foresee. The caller locks. Private to
 * web/store. */
#ifndef DPT_STORE_THROTTLE_H
#define DPT_STORE_THROTTLE_H

#include <stdint.h>

#define THROTTLE_PLACES 1024

struct throttle {
	uint64_t seed; /* drawn by whoever zeroes the rest */
	struct {
		double wrong; /* guesses not yet forgotten, */
		double at_s;  /* as of then */
	} places[THROTTLE_PLACES];
};

/* 0: may guess now; else the seconds until then, at most five. from: who, a number made of the address. */
int throttle_wait_s(struct throttle *t, uint64_t from, double now_s);

void throttle_wrong(struct throttle *t, uint64_t from, double now_s);

#endif
