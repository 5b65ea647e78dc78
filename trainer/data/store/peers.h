/* SPDX-License-Identifier: Apache-2.0 */
/* peers.h: the nodes of a job that share their caches (--cache-shared). Each block has one owner, found by rendezvous
 * hashing of its name over the ids of the caches (Thaler and Ravishankar, 1998): a lost node moves only its own blocks.
 * A request and its response prove by HMAC that both ends know the secret of the job. The key itself is never sent;
 * the blocks are not encrypted, like all data between the nodes. Thread-safe. */
#ifndef DPT_DATA_PEERS_H
#define DPT_DATA_PEERS_H

#include "tracker/base/err.h"

#define PEERS_ID_BYTES 16
#define PEERS_NONCE_BYTES 33 /* 32 hex digits */
#define PEERS_PROOF_BYTES 65 /* 64 hex digits */
#define PEERS_URL_BYTES 320

struct peers;

struct peers_node {
	unsigned char id[PEERS_ID_BYTES]; /* of its cache (cache_id): nodes with one folder have equal ids */
	char address[64];		  /* numeric, where it serves */
	int32_t port;
};

struct peers_opts {
	const struct peers_node *node; /* [n] all nodes that share, this one included; copied */
	int n;
	const unsigned char *id; /* of this node's cache: PEERS_ID_BYTES */
	const char *key;	 /* the secret of the job; copied */
};

struct peers *peers_open(const struct peers_opts *o);
void peers_close(struct peers *p); /* after the fetches and the server that use it; NULL is fine */

/* A request for a whole block. */
struct peers_ask {
	char name[65]; /* cache_name: what both ends must mean by the rest */
	char nonce[PEERS_NONCE_BYTES];
	int object; /* its number in the set */
	uint64_t begin, bytes;
};

/* Returns the node whose cache the block belongs to. name: of struct cache_block. */
int peers_owner(const struct peers *p, const char *name);

/* Returns the node to request a block from; -1: the store, because this node owns the block or the owner failed a
 * moment ago. */
int peers_pick(struct peers *p, const char *name);

/* Records that a node failed: it gets no requests for a while. The first failure of a node becomes a notice. */
void peers_failed(struct peers *p, int node, const char *why);
void peers_served(struct peers *p, int node); /* it answers */

/* Takes the next line to show to the user; false: none. */
bool peers_notice(struct peers *p, char *ret, size_t bytes);

/* ---- requests and responses; proofs are hex digits ---- */

/* Draws the nonce of a request and writes its address. */
int peers_begin(const struct peers *p, int node, struct peers_ask *ask, char url[PEERS_URL_BYTES], struct err *err);
void peers_prove_ask(const struct peers *p, const struct peers_ask *ask, char ret[PEERS_PROOF_BYTES]);

/* Proves a response. crc: CRC-32C of the block. */
void peers_prove_block(const struct peers *p, const struct peers_ask *ask, uint32_t crc, char ret[PEERS_PROOF_BYTES]);

/* Compares in constant time. */
bool peers_proof_equal(const char *a, const char *b);

/* ---- the blocks that this process serves ---- */

/* Reads a whole block without waiting for the store. Returns 1: done; 0: not yet, it is on its way; ERR_NOENT: not a
 * block of this set. */
typedef int peers_source(void *user, const struct peers_ask *ask, void *to);

void peers_attach(struct peers *p, peers_source *read, void *user);
void peers_detach(struct peers *p); /* returns when no call is running */

/* For the server: ERR_NOENT, 0 or 1 as above; 0 while nothing is attached. */
int peers_read(struct peers *p, const struct peers_ask *ask, void *to);

/* Records that a request from this address was refused: one notice for each reason. */
void peers_refused(struct peers *p, const char *from, const char *why);

/* ---- peer_server.c ----
 * Serves blocks of this node's cache to the other nodes, with one thread. HTTP/1.1:  GET
 * /block/NAME?object=N&begin=N&bytes=N Authorization: DPTrain NONCE PROOF  200  the block; DPTrain-Block: CRC-32C and
 * proof 202  it is on its way from the store: ask again 503  too many blocks are being sent: ask again 400  not such a
 * request      403  another job key      404  not a block of this node's set  Memory and connections are limited. A
 * client that sends or receives nothing for a while is disconnected. */

#define PEER_SERVER_BLOCK_HEADER "DPTrain-Block"
#define PEER_SERVER_IDLE_S 10.0	    /* longest time without a byte of a request or of a response */
#define PEER_SERVER_CONNECTIONS 256 /* then the one that waits longest for a request is closed */
#define PEER_SERVER_BLOCKS 16	    /* sent at a time */
#define PEER_SERVER_HEAD_BYTES 4096 /* largest request */

struct peer_server;
struct peers;

/* listener: a listening, non-blocking TCP socket, owned from here on (on failure, too). p must outlive the server. */
int peer_server_open(struct peer_server **ret, struct peers *p, int listener, struct err *err);
void peer_server_close(struct peer_server *s); /* drops all connections; NULL is fine */

#endif
