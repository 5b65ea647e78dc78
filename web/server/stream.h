/* stream.h: replies that come piece by piece. Private to web/server. */
#ifndef DPT_SERVER_STREAM_H
#define DPT_SERVER_STREAM_H

#include "web/server/exchange.h"

/* The call's stream as a response; takes it over in every case. NULL: out of memory. */
struct MHD_Response *stream_response(struct exchange *x, bool gzip);

enum { STREAM_NUDGE_ALL = 1, STREAM_NUDGE_PROBE = 2 };

/* Wakes event streams: all of them after a change, else those whose heartbeat is due or (PROBE) whose client has left.
 * Any thread. */
void stream_nudge(struct server *s, int how);

#endif
