/* SPDX-License-Identifier: Apache-2.0 */
/* fetch_peer.c: blocks that another node's cache owns are requested from that node. A node answers at once,
 * with the block or that it is on its way from the store. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "trainer/data/store/fetch_inside.h"

#define CONNECT_S 5.0
#define ASK_FIRST_S 0.02 /* until a block that is on its way is requested again; doubled each time */
#define ASK_MOST_S 0.2
#define WAIT_MOST_S 60.0 /* then the store is asked for a block that was on its way */

static void describe_ask(const struct fetch *f, const struct fetched_block *b, struct peers_ask *ret)
{
	struct cache_block name;

	kept_name(f, b->object, b->begin, &name);
	*ret = (struct peers_ask){ .object = b->object, .begin = b->begin, .bytes = b->n };
	memcpy(ret->name, name.name, sizeof(ret->name));
}

int fetch_peer_pick(struct fetch *f, struct fetch_slot *s, const struct fetched_block *b)
{
	if (!f->o.peers || !b->claimed || b->direct || b->store_only)
		return -1;
	describe_ask(f, b, &s->ask);
	return peers_pick(f->o.peers, s->ask.name);
}

bool fetch_peer_begin(struct fetch *f, struct fetch_slot *s, struct fetched_block *b)
{
	char url[PEERS_URL_BYTES], proof[PEERS_PROOF_BYTES];
	struct err ignored = ERR_INIT;

	if (peers_begin(f->o.peers, b->peer, &s->ask, url, &ignored))
		return false;
	peers_prove_ask(f->o.peers, &s->ask, proof);
	if (!curl_add_header(&f->so, &s->headers, "Authorization: DPTrain %s %s", s->ask.nonce, proof))
		return false;
	transfer_begin(&s->transfer, &f->so,
		       &(struct transfer_want){ .url = url,
						.etag = "",
						.n = b->n,
						.stall_s = PEER_SERVER_IDLE_S,
						.left_s = CONNECT_S,
						.headers = s->headers,
						.peer = true,
						.to = b->bytes,
						.sums = true });
	return true;
}

/* Returns true if the response proves that a node of this job sent these bytes. */
static bool is_block_proven(const struct fetch *f, const struct fetch_slot *s)
{
	char proof[PEERS_PROOF_BYTES], want[PEERS_PROOF_BYTES];
	unsigned crc;

	if (sscanf(s->transfer.curl.answer.extra, "%8x %64[0-9a-f]", &crc, proof) != 2 || crc != s->transfer.sum ||
	    strlen(proof) != PEERS_PROOF_BYTES - 1)
		return false;
	peers_prove_block(f->o.peers, &s->ask, crc, want);
	return peers_proof_equal(proof, want);
}

/* Returns true if the block shall be requested again from its owner, which has it on its way. */
static bool may_ask_again(const struct fetch *f, struct fetched_block *b)
{
	const double now = clock_mono_s();

	if (!b->peer_asks)
		b->peer_since = now;
	if (now - b->peer_since > fmin(WAIT_MOST_S, f->o.timeout_s / 2))
		return false;
	b->not_before = now + fmin(ASK_MOST_S, ldexp(ASK_FIRST_S, b->peer_asks < 10 ? b->peer_asks : 10));
	b->peer_asks++;
	return true;
}

bool fetch_peer_end(struct fetch *f, struct fetch_slot *s, int code)
{
	struct transfer *t = &s->transfer;
	struct fetched_block *b = s->block;
	const bool answered = transfer_answered(t, &f->so, code);
	const long status = t->curl.answer.status;
	char why[200];

	if (answered && status == 200 && t->got == b->n && is_block_proven(f, s)) {
		peers_served(f->o.peers, b->peer);
		f->counts.peer_bytes += b->n;
		return true;
	}
	if (answered && (status == 202 || status == 503) && may_ask_again(f, b))
		return false;
	if (!answered)
		snprintf(why, sizeof(why), "%.190s", t->curl.error);
	else if (status == 200)
		snprintf(why, sizeof(why), "its response is not a block of this job");
	else if (status == 202 || status == 503)
		snprintf(why, sizeof(why), "it did not get a block in time");
	else /* the body is one line */
		snprintf(why, sizeof(why), "it refused a request (status %ld, %.*s)", status,
			 (int)strcspn(t->text, "\r\n"), t->text);
	peers_failed(f->o.peers, b->peer, why);
	f->counts.peer_failures++;
	b->store_only = true;
	b->not_before = 0;
	return false;
}
