/* stop.h: how somebody who waits for another learns that nobody wants it any more. Whoever waits looks a few times a
 * second. */
#ifndef DPT_BASE_STOP_H
#define DPT_BASE_STOP_H

#include <stdatomic.h>
#include <stdbool.h>

struct stop {
	_Atomic bool now;
	bool (*asked)(void *user); /* optional: asked too, by the thread that waits; true once is true for ever */
	void *user;
};

/* NULL: never. */
static inline bool stop_asked(const struct stop *s)
{
	return s && (atomic_load(&s->now) || (s->asked && s->asked(s->user)));
}

#endif
