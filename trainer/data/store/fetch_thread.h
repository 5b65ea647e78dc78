/* fetch_thread.h: the thread that requests the queued blocks. Only this thread uses libcurl. */
#ifndef DPT_DATA_FETCH_THREAD_H
#define DPT_DATA_FETCH_THREAD_H

#include "trainer/data/store/fetch_inside.h"

/* Starts the thread, or wakes it if it may request more. It starts with the first block, because a process may fork
 * before. Under the lock. */
int fetcher_start(struct fetch *f, struct err *err);

/* Cancels the transfers and joins the thread. */
void fetcher_end(struct fetch *f);

#endif
