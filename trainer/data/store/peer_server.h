/* SPDX-License-Identifier: Apache-2.0 */
/* peer_server.h: serves blocks of this node's cache to the other nodes, with one thread. HTTP/1.1:
 *
 *	GET /block/NAME?object=N&begin=N&bytes=N
 *	Authorization: DPTrain NONCE PROOF
 *
 *	200  the block; DPTrain-Block: CRC-32C and proof
 *	202  it is on its way from the store: ask again
 *	503  too many blocks are being sent: ask again
 *	400  not such a request      403  another job key      404  not a block of this node's set
 *
 * Memory and connections are limited. A client that sends or receives nothing for a while is disconnected. */
#ifndef DPT_DATA_PEER_SERVER_H
#define DPT_DATA_PEER_SERVER_H

#include "tracker/base/err.h"

#define PEER_SERVER_BLOCK_HEADER "DPTrain-Block"
#define PEER_SERVER_IDLE_S 10.0	  /* longest time without a byte of a request or of a response */
#define PEER_SERVER_CONNECTIONS 256 /* then the one that waits longest for a request is closed */
#define PEER_SERVER_BLOCKS 16	  /* sent at a time */
#define PEER_SERVER_HEAD_BYTES 4096 /* largest request */

struct peer_server;
struct peers;

/* listener: a listening, non-blocking TCP socket, owned from here on (on failure, too). p must outlive the server. */
int peer_server_open(struct peer_server **ret, struct peers *p, int listener, struct err *err);
void peer_server_close(struct peer_server *s); /* drops all connections; NULL is fine */

#endif
