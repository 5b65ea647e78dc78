/* SPDX-License-Identifier: Apache-2.0 */
/* ucx_module.c: transport over UCX: TCP, or RDMA where available. Each socket is a UCX worker with its own connections;
 * a long message is cut into one part for each socket. Messages match by the sender's rank: UCX keeps the order of
 * messages between two workers. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "trainer/comm/link.h"

#define PART_BYTES ((size_t)256 << 10) /* smallest part of a message that is split */
#define PROGRESS_MOST 64	       /* progress steps of one call: one step handles a piece of each connection */
#define DEVICE_TRIES 20		       /* retries of 0.1 s */
#define REFUSED_S 1.0		       /* wait for messages that an ended rank left on the way */
#define CLOSE_TRIES 1000	       /* tries of 1 ms each, for the last bytes to leave */
#define CLOSE_TRIES_BROKEN 50	       /* no more bytes have to arrive */

extern const struct link_module dptrain_link_v4;

struct ucx_socket {
	ucp_worker_h worker;
	ucp_address_t *address;
	size_t address_bytes;
	int fd;
	ucp_ep_h *ep; /* by rank; NULL: not connected */
};

struct ucx {
	struct link link;
	struct link_opts o;
	ucp_context_h context;
	struct ucx_socket socket[LINK_SOCKETS_MAX];
	unsigned char *address; /* addresses of all sockets, (size_t length, bytes) each */
	size_t address_bytes;
	unsigned char **theirs; /* by rank, as address */
	size_t *theirs_bytes;
	bool *gone;	   /* by rank */
	double *refused_s; /* by rank: when it first refused a connection; 0: never */
};

static int set_ucx_error(struct err *err, const char *what, ucs_status_t s)
{
	return err_set(err, ERR_IO, "transport ucx: %s: %s", what, ucs_status_string(s));
}

static bool set_in_environment(const char *name)
{
	const char *v = getenv(name);

	return v && *v;
}

/* UCX connects machines only: ranks of one machine use shared memory, and two containers of one machine must not be
 * taken for one. Without RDMA devices, UCX uses only the interface that leads to the other machines. Messages are sent
 * eagerly (no rendezvous): a request for room would queue after all bytes on the wire, and TCP stops a sender that is
 * too far ahead anyway. Messages are sent without a copy: UCX reports a copied message as sent although some bytes
 * leave only in later UCX calls, which a rank that waits elsewhere does not make. A user's own settings take
 * precedence. */
static void configure_ucx(ucp_config_t *config, const struct link_opts *o)
{
	struct stat st;
	const bool tcp = stat("/sys/class/infiniband", &st) != 0;

	if (!set_in_environment("UCX_TLS"))
		ucp_config_modify(config, "TLS", tcp ? "tcp" : "rc,dc,ud,tcp");
	if (!set_in_environment("UCX_RNDV_THRESH") && tcp)
		ucp_config_modify(config, "RNDV_THRESH", "inf");
	if (!set_in_environment("UCX_ZCOPY_THRESH") && tcp)
		ucp_config_modify(config, "ZCOPY_THRESH", "1");
	if (!set_in_environment("UCX_NET_DEVICES") && o->interface[0] && tcp)
		ucp_config_modify(config, "NET_DEVICES", o->interface);
}

static int open_ucx_context(struct ucx *u, struct err *err)
{
	const ucp_params_t params = { .field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
				      .features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP,
				      .estimated_num_eps = (size_t)u->o.world };
	ucp_config_t *config;
	ucs_status_t s;

	s = ucp_config_read(NULL, NULL, &config);
	if (s != UCS_OK)
		return set_ucx_error(err, "cannot read its settings", s);
	configure_ucx(config, &u->o);
	for (int i = 0; i < DEVICE_TRIES; i++) { /* an interface that has just come up becomes visible a moment later */
		s = ucp_init(&params, config, &u->context);
		if (s != UCS_ERR_NO_DEVICE)
			break;
		usleep(100000);
	}
	ucp_config_release(config);
	return s == UCS_OK ? 0 : set_ucx_error(err, "cannot start", s);
}

static int open_ucx_socket(struct ucx *u, struct ucx_socket *k, struct err *err)
{
	const ucp_worker_params_t params = { .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
					     .thread_mode = UCS_THREAD_MODE_SERIALIZED };
	ucs_status_t s = ucp_worker_create(u->context, &params, &k->worker);

	if (s == UCS_OK)
		s = ucp_worker_get_address(k->worker, &k->address, &k->address_bytes);
	if (s == UCS_OK)
		s = ucp_worker_get_efd(k->worker, &k->fd);
	if (s != UCS_OK)
		return set_ucx_error(err, "cannot make a worker", s);
	k->ep = calloc((size_t)u->o.world, sizeof(ucp_ep_h));
	return k->ep ? 0 : err_nomem(err, "connections");
}

static int write_address(struct ucx *u, struct err *err)
{
	unsigned char *at;

	for (int i = 0; i < u->o.sockets; i++)
		u->address_bytes += sizeof(size_t) + u->socket[i].address_bytes;
	u->address = at = malloc(u->address_bytes);
	if (!at)
		return err_nomem(err, "addresses");
	for (int i = 0; i < u->o.sockets; i++) {
		memcpy(at, &u->socket[i].address_bytes, sizeof(size_t));
		memcpy(at + sizeof(size_t), u->socket[i].address, u->socket[i].address_bytes);
		at += sizeof(size_t) + u->socket[i].address_bytes;
	}
	return 0;
}

static void ucx_close(struct link *l, bool orderly);

/* Opens the UCX context and all sockets, and collects their addresses. */
static int ucx_open(struct link **ret, const struct link_opts *o, struct err *err)
{
	struct ucx *u = calloc(1, sizeof(*u));
	int rc;

	if (!u)
		return err_nomem(err, "transport ucx");
	u->o = *o;
	u->theirs = calloc((size_t)o->world, sizeof(*u->theirs));
	u->theirs_bytes = calloc((size_t)o->world, sizeof(*u->theirs_bytes));
	u->gone = calloc((size_t)o->world, sizeof(*u->gone));
	u->refused_s = calloc((size_t)o->world, sizeof(*u->refused_s));
	rc = u->theirs && u->theirs_bytes && u->gone && u->refused_s ? open_ucx_context(u, err)
								     : err_nomem(err, "transport ucx");
	for (int i = 0; !rc && i < o->sockets; i++)
		rc = open_ucx_socket(u, &u->socket[i], err);
	if (!rc)
		rc = write_address(u, err);
	if (rc) {
		ucx_close(&u->link, false);
		return rc;
	}
	u->link.module = &dptrain_link_v4;
	*ret = &u->link;
	return 0;
}

static const void *ucx_address(struct link *l, size_t *ret_n)
{
	*ret_n = ((struct ucx *)l)->address_bytes;
	return ((struct ucx *)l)->address;
}

static int ucx_connect(struct link *l, int rank, const void *address, size_t n, struct err *err)
{
	struct ucx *u = (struct ucx *)l;

	u->theirs[rank] = malloc(n ? n : 1);
	if (!u->theirs[rank])
		return err_nomem(err, "addresses");
	memcpy(u->theirs[rank], address, n);
	u->theirs_bytes[rank] = n;
	return 0;
}

static void mark_peer_gone(void *user, ucp_ep_h ep, ucs_status_t status)
{
	(void)ep, (void)status;
	*(bool *)user = true;
}

/* Returns the part of a rank's address for socket i; NULL: there is none. */
static const ucp_address_t *socket_address_of(const struct ucx *u, int rank, int i)
{
	const unsigned char *at = u->theirs[rank], *end = at + u->theirs_bytes[rank];

	for (;; i--) {
		size_t n;

		if (!at || (size_t)(end - at) < sizeof(n))
			return NULL;
		memcpy(&n, at, sizeof(n));
		at += sizeof(n);
		if ((size_t)(end - at) < n)
			return NULL;
		if (i == 0)
			return (const ucp_address_t *)(const void *)at;
		at += n;
	}
}

/* A rank may end after its last message and before this rank connects to it: messages on the way still arrive. */
static int note_refusal(struct ucx *u, int rank)
{
	if (u->refused_s[rank] == 0)
		u->refused_s[rank] = clock_mono_s();
	return ERR_PEER;
}

static bool is_gone(const struct ucx *u, int rank)
{
	return u->gone[rank] || (u->refused_s[rank] > 0 && clock_mono_s() - u->refused_s[rank] > REFUSED_S);
}

/* Connects at the first use, since each rank exchanges messages with few others. ERR_PEER without a message: the rank
 * is gone. */
static int open_endpoint(struct ucx *u, int rank, int i, struct err *err)
{
	const ucp_address_t *address = socket_address_of(u, rank, i);
	ucp_ep_params_t params = { .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
						 UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER,
				   .address = address,
				   .err_mode = UCP_ERR_HANDLING_MODE_PEER,
				   .err_handler = { mark_peer_gone, &u->gone[rank] } };
	ucs_status_t s;

	if (u->socket[i].ep[rank])
		return 0;
	if (!address)
		return err_set(err, ERR_USAGE, "transport ucx: rank %d has no address for socket %d; give all nodes "
			       "the same --comm-sockets", rank, i);
	s = ucp_ep_create(u->socket[i].worker, &params, &u->socket[i].ep[rank]);
	if (s == UCS_OK)
		return 0;
	u->socket[i].ep[rank] = NULL;
	return s == UCS_ERR_UNREACHABLE ? note_refusal(u, rank) : set_ucx_error(err, "cannot connect", s);
}

static int count_ucx_parts(const struct ucx *u, size_t bytes)
{
	size_t n = bytes / PART_BYTES;

	return n < 1 ? 1 : n < (size_t)u->o.sockets ? (int)n : u->o.sockets;
}

static int start_ucx_part(struct ucx *u, struct link_transfer *t, int i, int parts, struct err *err)
{
	static const ucp_request_param_t plain = { .op_attr_mask = 0 };
	size_t from = t->bytes / (size_t)parts * (size_t)i;
	size_t n = i == parts - 1 ? t->bytes - from : t->bytes / (size_t)parts;
	char *at = (char *)t->data + from;
	int rc = open_endpoint(u, t->peer, i, err);

	if (rc == ERR_PEER && t->sends)
		return err_set(err, rc, "the connection to rank %d broke", t->peer);
	if (rc && rc != ERR_PEER)
		return rc;
	if (t->sends)
		t->request[i] = ucp_tag_send_nbx(u->socket[i].ep[t->peer], at, n, (ucp_tag_t)u->o.rank, &plain);
	else
		t->request[i] = ucp_tag_recv_nbx(u->socket[i].worker, at, n, (ucp_tag_t)t->peer, UINT64_MAX, &plain);
	if (!UCS_PTR_IS_ERR(t->request[i]))
		return 0;
	t->request[i] = NULL;
	return err_set(err, ERR_PEER, "the connection to rank %d broke", t->peer);
}

static int ucx_start(struct link *l, struct link_transfer *t, struct err *err)
{
	struct ucx *u = (struct ucx *)l;
	int parts = count_ucx_parts(u, t->bytes), rc = 0;

	memset(t->request, 0, sizeof(t->request));
	for (int i = 0; !rc && i < parts; i++)
		rc = start_ucx_part(u, t, i, parts, err);
	return rc;
}

static bool progress_workers(struct ucx *u)
{
	unsigned did = 0;

	for (int i = 0; i < u->o.sockets; i++)
		did += u->socket[i].worker ? ucp_worker_progress(u->socket[i].worker) : 0;
	return did > 0;
}

static void ucx_progress(struct link *l)
{
	for (int i = 0; i < PROGRESS_MOST && progress_workers((struct ucx *)l); i++)
		;
}

static int ucx_poll(struct link *l, struct link_transfer *t, struct err *err)
{
	struct ucx *u = (struct ucx *)l;
	bool done = true, failed = false;

	for (int i = 0; i < u->o.sockets; i++) {
		ucs_status_t s = t->request[i] ? ucp_request_check_status(t->request[i]) : UCS_OK;

		if (s == UCS_INPROGRESS) {
			done = false;
			continue;
		}
		if (t->request[i])
			ucp_request_free(t->request[i]);
		t->request[i] = NULL;
		failed = failed || s != UCS_OK;
	}
	if (failed || (!done && is_gone(u, t->peer))) /* a rank that ended after its last message is no failure */
		return err_set(err, ERR_PEER, "the connection to rank %d broke", t->peer);
	return done;
}

static void ucx_wait(struct link *l, double seconds)
{
	struct ucx *u = (struct ucx *)l;
	struct pollfd p[LINK_SOCKETS_MAX];

	for (int i = 0; i < u->o.sockets; i++) {
		if (ucp_worker_arm(u->socket[i].worker) != UCS_OK) /* events are already pending */
			return;
		p[i] = (struct pollfd){ .fd = u->socket[i].fd, .events = POLLIN };
	}
	poll(p, (nfds_t)u->o.sockets, (int)(seconds * 1000) + 1);
}

/* Begins to close one connection; NULL: done. */
static void *begin_close(struct ucx *u, int i, int rank, bool orderly)
{
	static const ucp_request_param_t gently = { .op_attr_mask = 0 },
					 at_once = { .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
						     .flags = UCP_EP_CLOSE_FLAG_FORCE };
	bool gentle = orderly && !u->gone[rank];
	void *request =
		u->socket[i].ep[rank] ? ucp_ep_close_nbx(u->socket[i].ep[rank], gentle ? &gently : &at_once) : NULL;

	return UCS_PTR_IS_PTR(request) ? request : NULL;
}

/* Closes all endpoints together, because each end waits for the other's. */
static void close_endpoints(struct ucx *u, bool orderly)
{
	void **request = calloc((size_t)u->o.sockets * (size_t)u->o.world, sizeof(*request));
	int n = 0;

	for (int i = 0; request && i < u->o.sockets; i++)
		for (int r = 0; u->socket[i].ep && r < u->o.world; r++) {
			request[n] = begin_close(u, i, r, orderly);
			n += request[n] != NULL;
		}
	for (int tries = 0; n > 0 && tries < (orderly ? CLOSE_TRIES : CLOSE_TRIES_BROKEN); tries++) {
		if (!progress_workers(u))
			ucx_wait(&u->link, 0.001);
		for (int k = 0; k < n;) {
			if (ucp_request_check_status(request[k]) == UCS_INPROGRESS) {
				k++;
				continue;
			}
			ucp_request_free(request[k]);
			request[k] = request[--n];
		}
	}
	for (int k = 0; k < n; k++)
		ucp_request_free(request[k]);
	free(request);
}

/* Closes the connections first, then frees the workers and the context. */
static void ucx_close(struct link *l, bool orderly)
{
	struct ucx *u = (struct ucx *)l;

	close_endpoints(u, orderly);
	for (int i = 0; i < u->o.sockets; i++) {
		struct ucx_socket *k = &u->socket[i];

		if (k->address)
			ucp_worker_release_address(k->worker, k->address);
		if (k->worker)
			ucp_worker_destroy(k->worker);
		free(k->ep);
	}
	if (u->context)
		ucp_cleanup(u->context);
	for (int r = 0; u->theirs && r < u->o.world; r++)
		free(u->theirs[r]);
	free(u->theirs);
	free(u->theirs_bytes);
	free(u->gone);
	free(u->refused_s);
	free(u->address);
	free(u);
}

__attribute__((visibility("default"))) const struct link_module dptrain_link_v4 = {
	.abi = LINK_ABI,
	.name = "ucx",
	.arrives_alone = true,
	.open = ucx_open,
	.address = ucx_address,
	.connect = ucx_connect,
	.start = ucx_start,
	.progress = ucx_progress,
	.poll = ucx_poll,
	.wait = ucx_wait,
	.close = ucx_close,
};
