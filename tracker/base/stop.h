/* stop.h: a stop request for a waiting thread, which polls it a few times a second. */
#ifndef DPT_BASE_STOP_H
#define DPT_BASE_STOP_H

#include <stdatomic.h>
#include <stdbool.h>

struct stop {
	_Atomic bool now;
	bool (*asked)(void *user); /* optional: polled by the waiting thread, too; once true it must stay true */
	void *user;
};

/* s NULL: never stopped. */
static inline bool stop_asked(const struct stop *s)
{
	return s && (atomic_load(&s->now) || (s->asked && s->asked(s->user)));
}

#endif
