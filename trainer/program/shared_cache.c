/* SPDX-License-Identifier: Apache-2.0 */
/* shared_cache.c: opens this node's cache, listens on its first rank, and exchanges ids and addresses. */
#include "trainer/program/loading.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracker/base/log.h"
#include "tracker/mem/mem.h"
#include "trainer/data/store/cache.h"

struct shared_cache {
	struct cache *cache; /* open, so that a cache in memory keeps its id */
	struct peers *peers;
	struct peer_server *server; /* on the node's first rank */
};

/* The nodes that announced themselves. */
struct node_list {
	struct peers_node *node;
	int n, cap;
};

/* Messages are copied from memory as they are. */
_Static_assert(sizeof(struct peers_node) == PEERS_ID_BYTES + 64 + sizeof(int32_t), "a node has no gaps");
_Static_assert(PEERS_ID_BYTES == CACHE_ID_BYTES, "a node is named by its cache");

/* Opens the cache and, on the node's first rank, a listener at the address by which the other machines reach this one.
 */
static int open_own_node(struct shared_cache *s, const struct rank *r, struct peers_node *ret, int *ret_listener,
			 struct err *err)
{
	struct cache_opts o = { .folder = r->cfg->cache };
	int other = bootstrap_self(r->net) ? 0 : 1, rc = 0;

	if (!r->cfg->cache)
		return err_set(err, ERR_USAGE, "--cache-shared: needs --cache DIR or --cache ram on every machine");
	if (r->cfg->cache_size)
		rc = config_bytes(r->cfg, FLAG_cache_size, r->cfg->cache_size, &o.most_bytes, err);
	if (!rc)
		rc = cache_open(&s->cache, &o, err);
	if (rc)
		return rc;
	cache_id(s->cache, ret->id);
	if (r->context->local_rank)
		return 0;
	tcp_own_name(bootstrap_fd(r->net, other), ret->address);
	rc = tcp_listen(ret->address, 0, ret_listener, err);
	if (rc)
		return err_prefix(err, "--cache-shared");
	ret->port = tcp_port(*ret_listener);
	return 0;
}

/* Tells all ranks of this node and collects those that serve. A failure of one rank is reported to all. */
static int exchange_nodes(struct bootstrap *x, const struct peers_node *own, const struct err *failure,
			  struct node_list *ret, struct err *err)
{
	int rc = bootstrap_round(x, own, sizeof(*own), failure, err);

	for (int i = 0; !rc && i < bootstrap_count(x); i++) {
		struct peers_node node;
		size_t n;
		const void *said = bootstrap_said(x, i, &n);

		if (n != sizeof(node))
			continue;
		memcpy(&node, said, sizeof(node));
		node.address[sizeof(node.address) - 1] = '\0';
		if (node.port > 0)
			mem_push(&ret->node, &ret->n, &ret->cap, node);
	}
	return rc;
}

static int count_caches(const struct node_list *l)
{
	int n = 0;

	for (int i = 0; i < l->n; i++) {
		bool first = true;

		for (int k = 0; k < i; k++)
			first &= memcmp(l->node[k].id, l->node[i].id, PEERS_ID_BYTES) != 0;
		n += first;
	}
	return n;
}

int shared_cache_open(struct shared_cache **ret, const struct rank *r, struct err *err)
{
	struct shared_cache *s;
	struct peers_node own = { .port = 0 };
	struct node_list nodes = { .n = 0 };
	struct err failure = ERR_INIT;
	int listener = -1, rc;

	*ret = NULL;
	if (!r->cfg->cache_shared || !r->net)
		return 0;
	s = mem_zalloc(sizeof(*s));
	open_own_node(s, r, &own, &listener, &failure);
	rc = exchange_nodes(r->net, &own, &failure, &nodes, err);
	if (!rc)
		s->peers = peers_open(&(struct peers_opts){
			.node = nodes.node, .n = nodes.n, .id = own.id, .key = r->context->net.key });
	if (!rc && listener >= 0)
		rc = peer_server_open(&s->server, s->peers, listener, err);
	else if (listener >= 0)
		close(listener);
	if (!rc && rank_is_root(r))
		log_info("--cache-shared: %d machines, %d cache%s", nodes.n, count_caches(&nodes),
			 count_caches(&nodes) == 1 ? "" : "s");
	free(nodes.node);
	if (rc) {
		shared_cache_close(s);
		return rc;
	}
	*ret = s;
	return 0;
}

void shared_cache_close(struct shared_cache *s)
{
	if (!s)
		return;
	peer_server_close(s->server);
	peers_close(s->peers);
	cache_close(s->cache);
	free(s);
}

struct peers *shared_cache_peers(const struct shared_cache *s)
{
	return s ? s->peers : NULL;
}
