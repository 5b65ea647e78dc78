/* fetch_thread.h: the thread that asks for the blocks of the queue. It alone touches libcurl. */
#ifndef DPT_DATA_FETCH_THREAD_H
#define DPT_DATA_FETCH_THREAD_H

#include "trainer/data/store/fetch_inside.h"

/* Begins the thread, or wakes it where it may ask for more now. It begins with the first block: a process may fork
 * before. Under the lock. */
int fetcher_start(struct fetch *f, struct err *err);

/* Ends the thread and what is under way. */
void fetcher_end(struct fetch *f);

#endif
