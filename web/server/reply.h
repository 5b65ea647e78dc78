/* reply.h: the call's reply onto its connection. Private to web/server. */
#ifndef DPT_SERVER_REPLY_H
#define DPT_SERVER_REPLY_H

#include "web/server/exchange.h"

/* Queues the reply; MHD_NO when it cannot be made, which closes the connection. */
enum MHD_Result reply_send(struct exchange *x);

/* Sends the (failed) call's reply while its body is still coming, so that a client which sends for hours hears at once;
 * then nothing but reading may follow, and the connection closes. False: not possible here (TLS without GnuTLS, no
 * room). */
bool reply_cut(struct exchange *x);

#endif
