/* SPDX-License-Identifier: Apache-2.0 */
/* http.c: the server: binds, starts the threads of libmicrohttpd and stops them. Requests go to exchange.c. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "tracker/base/clock.h"
#include "tracker/base/thread.h"
#include "tracker/mem/mem.h"
#include "web/server/exchange.h"
#include "web/server/sandbox.h"

enum {
	HTTP_WORKER_CONNECTIONS = 125, /* its epoll loop stalls when exactly 128 events are ready, the listener
					* included */
	HTTP_WORKERS_MIN = 4,
	HTTP_POOL_MIN = 4,
	HTTP_POOL_MAX = 16,
	HTTP_IDLE_TIMEOUT_S = 70,
	HTTP_TICK_MS = 250,
	HTTP_PROBE_TICKS = 4,
	HTTP_TELL_MS = 50,
	HTTP_TELLS_PER_S = 1000, /* limit for all event streams together: each queries the store */
	HTTP_BEGIN_MS = 500, /* at the end, calls that have not begun after this time are refused */
	HTTP_DRAIN_S = 10,
	HTTP_HURRY_S = 40, /* longer than the time after which a silent database is given up */
};

static void track_connection(void *cls, struct MHD_Connection *conn, void **context,
			     enum MHD_ConnectionNotificationCode what)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD);
	const union MHD_ConnectionInfo *from;
	int fd = info ? info->connect_fd : -1;
	struct server *s = cls;

	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		framing_begin(fd, s->listen.cert != NULL);
		from = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
		*context = conns_add(s->conns, fd, access_from(&s->access, NULL, from ? from->client_addr : NULL));
		atomic_fetch_add(&s->counters.connections, 1);
	} else {
		framing_end(fd);
		conns_remove(s->conns, *context);
		*context = NULL;
		atomic_fetch_sub(&s->counters.connections, 1);
	}
}

/* The router decodes percent-encoding, once. */
static size_t keep_percent_encoding(void *cls, struct MHD_Connection *conn, char *text)
{
	(void)cls;
	(void)conn;
	return strlen(text);
}

static void check_clients(struct server *s, unsigned tick)
{
	if (!(tick % HTTP_PROBE_TICKS))
		stream_nudge(s, STREAM_NUDGE_PROBE);
	conns_tick(s->conns);
}

static void notify_streams(struct server *s)
{
	double pause_ms = HTTP_TELL_MS + 1e3 * (double)atomic_load(&s->counters.streams) / HTTP_TELLS_PER_S;

	stream_nudge(s, STREAM_NUDGE_ALL);
	clock_sleep_s((pause_ms < HTTP_TICK_MS ? pause_ms : HTTP_TICK_MS) * 1e-3);
}

/* Waits for a change of the store, at most until until_s (of clock_mono_s). */
static void wait_for_change(struct server *s, double until_s)
{
	pthread_mutex_lock(&s->news_lock);
	while (!atomic_load(&s->changed) && cond_wait_until(&s->news, &s->news_lock, until_s))
		;
	pthread_mutex_unlock(&s->news_lock);
}

/* Wakes event streams at once after a change, but at a bounded rate; checks clients at each tick. */
static void *run_http_ticker(void *arg)
{
	struct server *s = arg;
	unsigned tick = 0, tokens = token_generation(s->api.store);
	double tick_at_s = clock_mono_s();

	while (!atomic_load(&s->drained)) {
		unsigned now = token_generation(s->api.store);

		if (atomic_exchange(&s->changed, false) || atomic_load(&s->stopping) || now != tokens)
			notify_streams(s);
		tokens = now;
		if (clock_mono_s() >= tick_at_s) {
			check_clients(s, ++tick);
			tick_at_s = clock_mono_s() + HTTP_TICK_MS * 1e-3;
		}
		wait_for_change(s, tick_at_s);
	}
	return NULL;
}

static void note_store_change(void *arg, uint64_t rev)
{
	struct server *s = arg;

	(void)rev;
	if (atomic_exchange(&s->changed, true))
		return;
	pthread_mutex_lock(&s->news_lock); /* the ticker has not looked yet, or it waits */
	pthread_cond_signal(&s->news);
	pthread_mutex_unlock(&s->news_lock);
}

int server_bind(struct server **ret, const struct server_opts *o, struct err *err)
{
	struct server *s = mem_zalloc(sizeof(*s));
	int rc;

	s->watch = -1;
	s->max_connections = o->max_connections > 0 ? (size_t)o->max_connections : 500;
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->news_lock, NULL);
	cond_init(&s->news);
	snprintf(s->access.host, sizeof(s->access.host), "%s", o->host);
	s->listen.fd = -1;
	if (o->db_path && o->artifacts_path) {
		snprintf(s->files[0], PATH_MAX, "%s", o->db_path);
		snprintf(s->files[1], PATH_MAX, "%.*s-wal", PATH_MAX - 5, o->db_path);
		snprintf(s->files[2], PATH_MAX, "%.*s-shm", PATH_MAX - 5, o->db_path);
		snprintf(s->files[3], PATH_MAX, "%s", o->artifacts_path);
		snprintf(s->logdir, PATH_MAX, "%s", o->logdir ? o->logdir : "");
	}
	if ((o->tls_cert || o->tls_key) && MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
		rc = err_set(err, ERR_UNSUPPORTED,
			     "--tls-cert: this libmicrohttpd was built without TLS; let a proxy encrypt and "
			     "use --behind-proxy");
	else
		rc = listen_open(&s->listen, o, err);
	if (!rc && s->listen.cert && tls_callback())
		rc = tls_use(s->listen.cert, s->listen.key, err);
	if (rc) {
		server_stop(s);
		return rc;
	}
	s->listen.hsts = o->hsts;
	s->access.behind_proxy = o->behind_proxy;
	s->access.any_host = s->listen.wildcard || o->behind_proxy;
	*ret = s;
	return 0;
}

const char *server_address(const struct server *s)
{
	return s->listen.address;
}

bool server_public(const struct server *s)
{
	return s->listen.public;
}

struct api_counters *server_counters(struct server *s)
{
	return &s->counters;
}

/* Refuses connections during the end. MHD_quiesce_daemon would, too, but with epoll it aborts the process when it and a
 * worker remove the listening socket at once (libmicrohttpd 0.9.75). */
static enum MHD_Result accept_connection(void *user, const struct sockaddr *from, socklen_t n)
{
	(void)from, (void)n;
	return atomic_load(&((struct server *)user)->stopping) ? MHD_NO : MHD_YES;
}

/* Forward secrecy and authenticated encryption alone. */
static const char tls_priorities[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-RSA:"
				     "-CIPHER-ALL:+AES-256-GCM:+CHACHA20-POLY1305:+AES-128-GCM";

/* Starts libmicrohttpd with enough workers for max_connections; s->daemon stays NULL on failure. */
static void start_http_daemon(struct server *s)
{
	size_t n = s->max_connections;
	unsigned workers = (unsigned)((n + HTTP_WORKER_CONNECTIONS - 1) / HTTP_WORKER_CONNECTIONS);
	unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC;
	struct MHD_OptionItem tls[] = {
		{ MHD_OPTION_HTTPS_MEM_CERT, 0, s->listen.cert },
		{ MHD_OPTION_HTTPS_MEM_KEY, 0, s->listen.key },
		{ MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)tls_priorities },
		{ MHD_OPTION_HTTPS_CERT_CALLBACK, 0, tls_callback() },
		{ MHD_OPTION_END, 0, NULL },
	};

	if (s->listen.cert)
		flags |= MHD_USE_TLS;
	else
		tls[0].option = MHD_OPTION_END;
	if (!tls_callback())
		tls[3].option = MHD_OPTION_END;
	if (workers < HTTP_WORKERS_MIN)
		workers = n < HTTP_WORKERS_MIN ? (unsigned)n : HTTP_WORKERS_MIN;
	s->daemon = MHD_start_daemon(
		flags, 0, accept_connection, s, exchange_go, s, MHD_OPTION_LISTEN_SOCKET, s->listen.fd,
		MHD_OPTION_THREAD_POOL_SIZE, workers > 1 ? workers : 0, MHD_OPTION_CONNECTION_LIMIT, (unsigned)n,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)GATE_HEAD_BYTES,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)HTTP_IDLE_TIMEOUT_S, MHD_OPTION_STRICT_FOR_CLIENT, 1,
		MHD_OPTION_UNESCAPE_CALLBACK, keep_percent_encoding, NULL, MHD_OPTION_URI_LOG_CALLBACK, exchange_open,
		s, MHD_OPTION_NOTIFY_COMPLETED, exchange_end, s, MHD_OPTION_NOTIFY_CONNECTION, track_connection, s,
		MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
}

static void start_http_threads(struct server *s)
{
	int threads = 2 * get_nprocs();

	threads = threads < HTTP_POOL_MIN ? HTTP_POOL_MIN : threads > HTTP_POOL_MAX ? HTTP_POOL_MAX : threads;
	if (!thread_pool_new(&s->pool, threads, NULL))
		start_http_daemon(s);
}

/* A confined thread starts the pool's and the library's threads, which inherit its Landlock rules. The store's own
 * threads are not confined. */
static void *run_confined_start(void *arg)
{
	struct server *s = arg;
	const struct sandbox_path paths[] = {
		{ .path = s->files[0], .write = true }, { .path = s->files[1], .write = true },
		{ .path = s->files[2], .write = true }, { .path = s->files[3], .write = true },
		{ .path = s->logdir, .names = true },	{ .path = "/proc/self/statm" },
		{ .path = "/etc/localtime" },
	};

	atomic_store(&s->counters.confined, sandbox_thread(paths, sizeof(paths) / sizeof(paths[0])));
	start_http_threads(s);
	return NULL;
}

static int start_confined(struct server *s, struct err *err)
{
	pthread_t starter;
	int rc;

	if (!s->files[0][0]) {
		start_http_threads(s);
		return 0;
	}
	rc = thread_start(&starter, run_confined_start, s);
	if (rc)
		return err_set_errno(err, rc, "cannot start a thread");
	pthread_join(starter, NULL);
	return 0;
}

int server_run(struct server *s, const struct api *api, struct err *err)
{
	int rc;

	s->api = *api;
	s->access.store = api->store;
	if (s->listen.public || s->access.behind_proxy)
		token_need(api->store);
	s->conns = conns_new(s->max_connections);
	s->watch = store_watch(api->store, note_store_change, s);
	if (start_confined(s, err))
		return err->code;
	if (!s->daemon)
		return s->listen.cert ? err_set(err, ERR_USAGE,
						"cannot serve with this --tls-cert and --tls-key: they must match, "
						"and the key must have no password")
				      : err_set(err, ERR_IO, "cannot start the HTTP threads");
	rc = thread_start(&s->ticker, run_http_ticker, s);
	s->ticking = !rc;
	return rc ? err_set_errno(err, rc, "cannot start a thread") : 0;
}

static void drain_requests(struct server *s)
{
	double began = clock_mono_s(), until = began + HTTP_DRAIN_S;

	conns_shutdown(s->conns, false);
	while (atomic_load(&s->in_flight) > 0 && clock_mono_s() < until) {
		atomic_store(&s->hurry, clock_mono_s() > began + HTTP_BEGIN_MS * 1e-3);
		clock_sleep_s(0.01);
	}
	if (!atomic_load(&s->in_flight))
		return;
	/* Those that have no answer by now get none. The library must not stop before every request that waits for a
	 * commit is woken: the store answers or fails all of them. */
	conns_shutdown(s->conns, true);
	store_hurry(s->api.store);
	until = clock_mono_s() + HTTP_HURRY_S;
	while (atomic_load(&s->in_flight) > 0 && clock_mono_s() < until)
		clock_sleep_s(0.01);
}

void server_tls_note(char *ret, size_t n)
{
	tls_note(ret, n);
}

int server_reload(const struct server_opts *o, struct err *err)
{
	return listen_read_certificate(o, err);
}

void server_stop(struct server *s)
{
	if (!s)
		return;
	atomic_store(&s->stopping, true);
	if (s->daemon) {
		s->listen.fd = -1; /* MHD_stop_daemon closes it */
		stream_nudge(s, STREAM_NUDGE_ALL);
		drain_requests(s);
	}
	atomic_store(&s->drained, true);
	if (s->ticking)
		pthread_join(s->ticker, NULL);
	if (s->daemon)
		MHD_stop_daemon(s->daemon);
	thread_pool_free(s->pool);
	if (s->watch >= 0)
		store_unwatch(s->api.store, s->watch);
	listen_close(&s->listen);
	tls_done();
	conns_free(s->conns);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->news);
	pthread_mutex_destroy(&s->news_lock);
	free(s);
}
