/* SPDX-License-Identifier: Apache-2.0 */
/* peers.c: owners of blocks, nodes that fail, and proofs. */
#include "trainer/data/store/peers.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "tracker/base/hash.h"
#include "tracker/base/sha256.h"
#include "tracker/base/text.h"
#include "tracker/mem/mem.h"

#define DOWN_S 10.0 /* after a failure; doubled for each further one */
#define DOWN_MOST_S 300.0
#define NOTICES 4
#define NOTICE_BYTES 300
#define REASONS_MOST 8 /* reasons of refusal that are reported */

struct peer_state {
	struct peers_node node;
	bool own; /* has this node's cache */
	bool reported;
	int failures; /* in a row */
	double down_until;
};

struct peers {
	struct peer_state *node;
	int n;
	char *key;
	pthread_mutex_t lock; /* protects the states of the nodes and the notices */
	char notice[NOTICES][NOTICE_BYTES];
	int n_notices;
	const char *refused[REASONS_MOST]; /* reasons that were reported */
	int n_refused;
	pthread_mutex_t source_lock; /* held during a call of the source */
	peers_source *source;
	void *source_user;
};

struct peers *peers_open(const struct peers_opts *o)
{
	struct peers *p = mem_zalloc(sizeof(*p));

	pthread_mutex_init(&p->lock, NULL);
	pthread_mutex_init(&p->source_lock, NULL);
	p->key = mem_strdup(o->key);
	p->n = o->n;
	p->node = mem_array((size_t)o->n, sizeof(*p->node));
	for (int i = 0; i < o->n; i++) {
		p->node[i].node = o->node[i];
		p->node[i].own = !memcmp(o->node[i].id, o->id, PEERS_ID_BYTES);
	}
	return p;
}

void peers_close(struct peers *p)
{
	if (!p)
		return;
	pthread_mutex_destroy(&p->lock);
	pthread_mutex_destroy(&p->source_lock);
	free(p->node);
	free(p->key);
	free(p);
}

/* Mixes all bits (the finalizer of MurmurHash3): FNV alone orders similar ids too regularly. */
static uint64_t mix_hash_bits(uint64_t x)
{
	x = (x ^ x >> 33) * UINT64_C(0xff51afd7ed558ccd);
	x = (x ^ x >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
	return x ^ x >> 33;
}

int peers_owner(const struct peers *p, const char *name)
{
	uint64_t most = 0;
	int owner = 0;

	for (int i = 0; i < p->n; i++) {
		uint64_t weight = hash_fnv_text(hash_fnv(HASH_FNV_BEGIN, p->node[i].node.id, PEERS_ID_BYTES), name);

		weight = mix_hash_bits(weight);
		if (!i || weight > most) {
			most = weight;
			owner = i;
		}
	}
	return owner;
}

int peers_pick(struct peers *p, const char *name)
{
	int owner = peers_owner(p, name);
	bool down;

	if (!p->n || p->node[owner].own)
		return -1;
	pthread_mutex_lock(&p->lock);
	down = clock_mono_s() < p->node[owner].down_until;
	pthread_mutex_unlock(&p->lock);
	return down ? -1 : owner;
}

/* Call under the lock. A line that finds no room is dropped: the counts remain. */
static char *next_notice_line(struct peers *p)
{
	return p->n_notices < NOTICES ? p->notice[p->n_notices++] : NULL;
}

void peers_failed(struct peers *p, int node, const char *why)
{
	struct peer_state *s = &p->node[node];
	double down = DOWN_S, now = clock_mono_s();
	char *line;

	pthread_mutex_lock(&p->lock);
	if (now >= s->down_until) { /* else a request of the same failure */
		for (int i = 0; i < s->failures && down < DOWN_MOST_S; i++)
			down *= 2;
		s->down_until = now + (down < DOWN_MOST_S ? down : DOWN_MOST_S);
		s->failures++;
	}
	line = s->reported ? NULL : next_notice_line(p);
	s->reported = true;
	if (line)
		snprintf(line, NOTICE_BYTES,
			 "--cache-shared: node %d (%.63s port %d): %.120s: its blocks are fetched from the store", node,
			 s->node.address, (int)s->node.port, why);
	pthread_mutex_unlock(&p->lock);
}

void peers_served(struct peers *p, int node)
{
	pthread_mutex_lock(&p->lock);
	p->node[node].failures = 0;
	pthread_mutex_unlock(&p->lock);
}

void peers_refused(struct peers *p, const char *from, const char *why)
{
	char *line = NULL;
	int i = 0;

	pthread_mutex_lock(&p->lock);
	while (i < p->n_refused && strcmp(p->refused[i], why))
		i++;
	if (i == p->n_refused && i < REASONS_MOST) {
		p->refused[p->n_refused++] = why;
		line = next_notice_line(p);
	}
	if (line)
		snprintf(line, NOTICE_BYTES, "--cache-shared: refused a request of %.63s: %.120s", from, why);
	pthread_mutex_unlock(&p->lock);
}

bool peers_notice(struct peers *p, char *ret, size_t bytes)
{
	bool any;

	pthread_mutex_lock(&p->lock);
	any = p->n_notices > 0;
	if (any) {
		snprintf(ret, bytes, "%s", p->notice[0]);
		p->n_notices--;
		memmove(p->notice[0], p->notice[1], (size_t)p->n_notices * NOTICE_BYTES);
	}
	pthread_mutex_unlock(&p->lock);
	return any;
}

/* ---- requests and proofs ---- */

int peers_begin(const struct peers *p, int node, struct peers_ask *ask, char url[PEERS_URL_BYTES], struct err *err)
{
	const struct peers_node *to = &p->node[node].node;
	bool v6 = strchr(to->address, ':') != NULL;

	if (text_random_hex(ask->nonce, (PEERS_NONCE_BYTES - 1) / 2))
		return err_set_errno(err, errno, "cannot get random bytes");
	snprintf(url, PEERS_URL_BYTES, "http://%s%.63s%s:%d/block/%.64s?object=%d&begin=%llu&bytes=%llu", v6 ? "[" : "",
		 to->address, v6 ? "]" : "", (int)to->port, ask->name, ask->object, (unsigned long long)ask->begin,
		 (unsigned long long)ask->bytes);
	return 0;
}

/* The text names who proves, so that a proof cannot be sent back to its author. */
static void prove_text(const struct peers *p, const struct peers_ask *ask, const char *who, char ret[PEERS_PROOF_BYTES])
{
	unsigned char mac[32];
	char text[256];
	int n = snprintf(text, sizeof(text), "dptrain %s %s %s %d %llu %llu", who, ask->nonce, ask->name, ask->object,
			 (unsigned long long)ask->begin, (unsigned long long)ask->bytes);

	sha256_hmac(p->key, text, (size_t)n, mac);
	text_hex(ret, mac, sizeof(mac));
}

void peers_prove_ask(const struct peers *p, const struct peers_ask *ask, char ret[PEERS_PROOF_BYTES])
{
	prove_text(p, ask, "asks", ret);
}

void peers_prove_block(const struct peers *p, const struct peers_ask *ask, uint32_t crc, char ret[PEERS_PROOF_BYTES])
{
	char who[32];

	snprintf(who, sizeof(who), "serves %08x", (unsigned)crc);
	prove_text(p, ask, who, ret);
}

bool peers_proof_equal(const char *a, const char *b)
{
	return sha256_proof_equal(a, b, PEERS_PROOF_BYTES - 1);
}

/* ---- the source ---- */

void peers_attach(struct peers *p, peers_source *read, void *user)
{
	pthread_mutex_lock(&p->source_lock);
	p->source = read;
	p->source_user = user;
	pthread_mutex_unlock(&p->source_lock);
}

void peers_detach(struct peers *p)
{
	peers_attach(p, NULL, NULL);
}

int peers_read(struct peers *p, const struct peers_ask *ask, void *to)
{
	int rc;

	pthread_mutex_lock(&p->source_lock);
	rc = p->source ? p->source(p->source_user, ask, to) : 0;
	pthread_mutex_unlock(&p->source_lock);
	return rc;
}
