/* throttle.h: limits wrong guesses per address: ten at once, then one every five seconds. Memory is constant:
 * addresses share a fixed number of slots, by a hash with a random seed. The caller locks. Private to web/store. */
#ifndef DPT_STORE_THROTTLE_H
#define DPT_STORE_THROTTLE_H

#include <stdint.h>

#define THROTTLE_PLACES 1024

struct throttle {
	uint64_t seed; /* drawn by the caller, who zeroes the rest */
	struct {
		double wrong; /* wrong guesses that count */
		double at_s;  /* at this time */
	} places[THROTTLE_PLACES];
};

/* 0: may guess now; else the seconds until then, at most five. from: a number made from the address. */
int throttle_wait_s(struct throttle *t, uint64_t from, double now_s);

void throttle_wrong(struct throttle *t, uint64_t from, double now_s);

#endif
