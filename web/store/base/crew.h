/* crew.h: a few threads that do short pieces of work in the order they come. They are there from the start: a thread
 * that an answering thread made would inherit the walls around that one. Knows nothing of what is done. */
#ifndef DPT_STORE_CREW_H
#define DPT_STORE_CREW_H

#include "tracker/base/err.h"

struct crew;

int crew_new(struct crew **ret, int threads, struct err *err);
void crew_free(struct crew *c); /* when all that was given is done; NULL is fine */

/* One piece; embedded in what it is about, whose owner keeps it until fn is called. Given once at a time. */
struct crew_task {
	void (*fn)(void *arg);
	void *arg;
	struct crew_task *next; /* the crew's own */
};

void crew_give(struct crew *c, struct crew_task *t); /* any thread */

#endif
