/* SPDX-License-Identifier: Apache-2.0 */
/* reply.h: sends the reply of a call on its connection. Private to web/server. */
#ifndef DPT_SERVER_REPLY_H
#define DPT_SERVER_REPLY_H

#include "web/server/exchange.h"

/* Queues the reply. Returns MHD_NO if it cannot be made, which closes the connection. */
enum MHD_Result reply_send(struct exchange *x);

/* Sends the reply of a failed call while its body is still arriving, so that a client that sends for hours learns of
 * the failure at once. Afterwards the connection may only be read, and is then closed. Returns false if this is not
 * possible (TLS without GnuTLS, socket buffer full). */
bool reply_cut(struct exchange *x);

#endif
