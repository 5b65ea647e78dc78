/* SPDX-License-Identifier: Apache-2.0 */
/* stream.h: replies that are produced piece by piece. Private to web/server. */
#ifndef DPT_SERVER_STREAM_H
#define DPT_SERVER_STREAM_H

#include "web/server/exchange.h"

/* Makes a response of the call's stream and takes the stream over in every case. NULL: out of memory. */
struct MHD_Response *stream_response(struct exchange *x, bool gzip);

enum { STREAM_NUDGE_ALL = 1, STREAM_NUDGE_PROBE = 2 };

/* Wakes event streams: all of them after a change (ALL), else those whose heartbeat is due or (PROBE) whose client has
 * left. Any thread. */
void stream_nudge(struct server *s, int how);

#endif
