/* cmd_serve.c: `dptrack serve`: store, follower and server together, until a signal. */
#include "web/cli/cli.h"

#include <errno.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/base/log.h"
#include "web/server/server.h"
#include "web/store/alert/alert_watch.h"
#include "web/store/auth/token.h"
#include "web/store/files/artifacts.h"
#include "web/store/follow/follow.h"
#include "web/store/store.h"
#include "web/store/maintenance/check.h"
#include "web/store/maintenance/maintenance.h"
#include "web/webhook/webhook.h"

/* More than all bodies that the server holds: its threads never wait for the disk here, readers would wait with
 * them. */
#define QUEUE_BYTES ((size_t)512 << 20)

#define SCAN_WAIT_S 3.0

struct serve {
	const char *logdir, *host, *db, *artifacts, *token_file, *tls_cert, *tls_key;
	const char *webhook_url, *webhook_secret_file, *archive_after;
	int64_t archive_after_ms;
	int port, max_connections, cache_mib, artifact_mib, drain_s;
	bool help, behind_proxy;
	char token[200]; /* "": none fixed */
	char owner_token[TOKEN_TEXT_MAX];
	struct store_paths paths;
	struct store *store;
	struct follow *follow;
	struct server *server;
	struct alert_watch *watch;
	struct webhook *webhook; /* NULL: nobody is told */
	sigset_t signals;
};

static int read_token(struct serve *o, struct err *err)
{
	const char *env = getenv("DPTRACK_TOKEN");
	FILE *f;

	if (!o->token_file) {
		if (env && strlen(env) >= sizeof(o->token))
			return err_set(err, ERR_USAGE, "DPTRACK_TOKEN: at most %zu characters", sizeof(o->token) - 1);
		snprintf(o->token, sizeof(o->token), "%s", env ? env : "");
		return 0;
	}
	f = fopen(o->token_file, "r");
	if (!f)
		return err_set_errno(err, errno, "--token-file %s", o->token_file);
	if (!fgets(o->token, sizeof(o->token), f))
		o->token[0] = '\0';
	fclose(f);
	o->token[strcspn(o->token, "\r\n")] = '\0';
	if (strlen(o->token) < 16)
		return err_set(err, ERR_USAGE,
			       "--token-file %s: the first line must hold a token of 16 characters or more",
			       o->token_file);
	return 0;
}

/* The lock file's token is for commands of this user on this machine, the other one for whoever was given it. */
static int fix_tokens(struct serve *o, struct err *err)
{
	char text[TOKEN_TEXT_MAX], hash[TOKEN_HASH_MAX];
	int rc = token_draw(text, hash, err);

	if (rc)
		return rc;
	/* one of a kind: its beginning says nothing */
	snprintf(o->owner_token, sizeof(o->owner_token), "%s", text + 4);
	rc = token_fix(o->store, o->owner_token, TOKEN_ADMIN, false, err);
	if (!rc && o->token[0])
		rc = token_fix(o->store, o->token, TOKEN_ADMIN, true, err);
	return rc;
}

/* One line with the address when another server has the folder. */
static int open_store(struct serve *o, struct err *err)
{
	struct store_holder holder;
	int rc = store_locate(&o->paths, o->logdir, o->db, err);

	if (rc)
		return rc;
	if (o->paths.elsewhere)
		log_info("%s cannot hold the store; it is %s", o->logdir, o->paths.db);
	rc = store_open(&o->store, &(struct store_opts){ .db_path = o->paths.db, .logdir = o->logdir,
		.artifacts = o->artifacts ? o->artifacts : o->paths.artifacts, .artifacts_by_default = !o->artifacts,
		.artifact_max = (uint64_t)o->artifact_mib << 20, .queue_bytes = QUEUE_BYTES,
		.cache_mib = o->cache_mib, .archive_after_ms = o->archive_after_ms }, err);
	if (rc == ERR_BUSY && !store_holder(&holder, o->paths.db, NULL) && holder.address[0])
		return err_set(err, ERR_BUSY, "%s is served already, at %s (process %d)", o->logdir, holder.address,
			       holder.pid);
	return rc;
}

static void raise_file_limit(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static void block_signals(struct serve *o)
{
	sigemptyset(&o->signals);
	sigaddset(&o->signals, SIGINT);
	sigaddset(&o->signals, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &o->signals, NULL); /* threads started later inherit it */
}

/* What a folder of usual size holds is there when the address is printed; a larger one is read on while it is served.
 * *ret_stop is set when a signal came meanwhile. */
static int scan(struct serve *o, bool *ret_stop, struct err *err)
{
	double until_s = clock_mono_s() + SCAN_WAIT_S;
	struct timespec none = { 0 };
	struct follow_stats stats;
	int rc;

	while ((rc = follow_scan_wait(o->follow, 0.1, err)) == ERR_BUSY && !*ret_stop && clock_mono_s() < until_s)
		*ret_stop = sigtimedwait(&o->signals, NULL, &none) > 0;
	if ((rc && rc != ERR_BUSY) || *ret_stop)
		return rc == ERR_BUSY ? 0 : rc;
	follow_stats(o->follow, &stats);
	if (stats.scanning)
		log_info("%s is still being read (%llu folders so far); /health?verbose=1 says how far it is",
			 o->logdir, (unsigned long long)stats.folders);
	if (stats.note[0])
		log_warn("%s", stats.note);
	return 0;
}

/* What is not there now, answering threads could not make later, nor whom they are not connected to, reach. */
static int prepare_files(struct serve *o, struct server_opts *so, struct err *err)
{
	const char *folder = artifacts_folder(store_artifacts(o->store));
	struct stat st;

	so->artifacts_path = folder ? folder : "";
	so->logdir = o->logdir;
	if (folder && mkdir(folder, 0700) && errno != EEXIST && o->artifacts)
		return err_set_errno(err, errno, "--artifacts %s", folder);
	if (folder && !stat(folder, &st) && !S_ISDIR(st.st_mode))
		return err_set(err, ERR_USAGE, "artifacts lie in a folder, and %s is none", folder);
	return artifacts_connect(store_artifacts(o->store), err);
}

/* Before anything is confined: neither thread stands within the walls of those that answer. */
static int start_alerts(struct serve *o, struct err *err)
{
	int rc = 0;

	if (!o->webhook_url != !o->webhook_secret_file)
		return err_set(err, ERR_USAGE, "--webhook and --webhook-secret-file go together");
	if (o->webhook_url)
		rc = webhook_new(&o->webhook, o->store, o->webhook_url, o->webhook_secret_file, err);
	if (!rc && o->webhook)
		rc = webhook_start(o->webhook, err);
	return rc ? rc : alert_watch_start(&o->watch, o->store, o->webhook != NULL, err);
}

static int start(struct serve *o, bool *ret_stop, struct err *err)
{
	struct server_opts so = {
		.host = o->host, .port = o->port, .max_connections = o->max_connections,
		.tls_cert = o->tls_cert, .tls_key = o->tls_key, .behind_proxy = o->behind_proxy, .db_path = o->paths.db
	};
	struct api api = { .started_s = clock_wall_s() };
	int rc = read_token(o, err);

	if (!rc)
		rc = open_store(o, err);
	if (!rc)
		rc = prepare_files(o, &so, err);
	if (!rc)
		rc = fix_tokens(o, err);
	if (!rc)
		so.has_token = token_needed(o->store) != 0;
	if (!rc)
		rc = server_bind(&o->server, &so, err);
	if (!rc && o->logdir)
		rc = follow_start(&o->follow, o->store,
				  &(struct follow_opts){ .logdir = o->logdir, .poll = o->paths.poll,
						       .network = o->paths.poll }, err);
	if (rc)
		return rc;
	api.store = o->store;
	api.follow = o->follow;
	api.counters = server_counters(o->server);
	rc = start_alerts(o, err);
	if (!rc)
		rc = server_run(o->server, &api, err);
	if (!rc)
		rc = store_publish(o->store, server_address(o->server), o->owner_token, err);
	return rc || !o->follow ? rc : scan(o, ret_stop, err);
}

/* Accounts of people, ours aside: they reach a loopback address as well as we do. */
static int count_other_people(void)
{
	FILE *f = fopen("/etc/passwd", "re");
	struct passwd *p;
	int n = 0;

	while (f && (p = fgetpwent(f)))
		n += p->pw_uid >= 1000 && p->pw_uid < 60000 && p->pw_uid != getuid() &&
			!strstr(p->pw_shell, "nologin") &&
		     !strstr(p->pw_shell, "/false");
	if (f)
		fclose(f);
	return n;
}

static void say_who_may(const struct serve *o)
{
	int others;

	if (token_needed(o->store)) {
		log_info("requests need a token (Authorization: Bearer, or as the password of any user; the page asks "
			 "for it)");
		if (server_public(o->server) && !o->tls_cert && !o->behind_proxy)
			log_warn("tokens and data travel unencrypted: give --tls-cert and --tls-key, or stand behind a "
				 "proxy that encrypts");
		return;
	}
	others = count_other_people();
	if (others)
		log_warn("%d other account%s of this machine can read and change the runs: dptrack token add NAME "
			 "--scope admin "
			 "makes the server ask for a token", others, others == 1 ? "" : "s");
}

/* Requests are answered while a proxy learns from /ready that it shall send no more; a second signal cuts it short. */
static void drain(struct serve *o)
{
	const struct timespec wait = { .tv_sec = o->drain_s };

	if (!o->drain_s)
		return;
	atomic_store(&server_counters(o->server)->draining, true);
	sigtimedwait(&o->signals, NULL, &wait);
}

/* Whoever waits for the line waits for no check. */
static int answer(struct serve *o, struct err *err)
{
	int sig = 0, rc;

	printf("dptrack: serving %s\n", server_address(o->server));
	fflush(stdout);
	rc = check_background(o->store, err);
	if (rc)
		return rc;
	say_who_may(o);
	sigwait(&o->signals, &sig);
	drain(o);
	return 0;
}

static int serve_until_signal(struct serve *o, struct err *err)
{
	bool stop = false;
	int rc;

	raise_file_limit();
	signal(SIGPIPE, SIG_IGN); /* a client that goes away is no reason to end */
	block_signals(o);
	rc = start(o, &stop, err);
	if (!rc && !stop)
		rc = answer(o, err);
	/* a second signal ends at once; what was acknowledged is safe then too */
	pthread_sigmask(SIG_UNBLOCK, &o->signals, NULL);
	store_work_stop(o->store); /* a backup may be under way */
	server_stop(o->server);
	follow_stop(o->follow);
	alert_watch_stop(o->watch);
	webhook_free(o->webhook);
	store_close(o->store);
	return rc;
}

static int serve_run(int argc, char **argv, struct err *err)
{
	struct serve o = { .host = "127.0.0.1", .port = 6007, .max_connections = 500, .archive_after = "1d" };
	const struct flag table[] = {
		{ "logdir", FLAG_PATH, "DIR",
		  "folder of runs, followed while they grow (default: runs; none where the store is in PostgreSQL)",
		  &o.logdir, 0, 0 },
		{ "host", FLAG_TEXT, "HOST", "address to listen on (default: 127.0.0.1)", &o.host, 0, 0 },
		{ "port", FLAG_NUMBER, "PORT", "default: 6007; 0: any free one", &o.port, 0, 65535 },
		{ "db", FLAG_PATH, "FILE",
		  "the store (default: DPTRACK_DB, or DIR/dptrack.db); postgresql://USER@HOST/NAME: one that several "
		  "processes serve", &o.db, 0, 0 },
		{ "artifacts", FLAG_PATH, "DIR",
		  "artifacts (default: beside the store); s3://BUCKET/PREFIX: in an object store, with AWS's variables",
		  &o.artifacts, 0, 0 },
		{ "archive-after", FLAG_TEXT, "SPAN",
		  "where artifacts lie in an object store, the points of runs that ended so long ago go there, "
		  "too, such as 30m, 12h, 7d (default: 1d; 0: none)", &o.archive_after, 0, 0 },
		{ "max-artifact-mib", FLAG_NUMBER, "N", "largest artifact taken, in MiB (default: 1048576)",
		  &o.artifact_mib, 1, 1048576 },
		{ "cache-mib", FLAG_NUMBER, "N",
		  "about what is remembered of the rows of a store in PostgreSQL, in MiB (default: 256), and half "
		  "as much again of the points that charts show", &o.cache_mib, 1, 65536 },
		{ "tls-cert", FLAG_PATH, "FILE", "serve HTTPS with this certificate (PEM, its chain behind it)",
		  &o.tls_cert, 0, 0 },
		{ "tls-key", FLAG_PATH, "FILE", "the certificate's private key (PEM)", &o.tls_key, 0, 0 },
		{ "behind-proxy", FLAG_SWITCH, "",
		  "a reverse proxy stands before the server: believe its X-Forwarded-Host and -Proto", &o.behind_proxy,
		  0, 0 },
		{ "drain", FLAG_NUMBER, "S",
		  "seconds between a signal and the end in which /ready says 503 and requests are still answered "
		  "(default: 0)", &o.drain_s, 0, 3600 },
		{ "max-connections", FLAG_NUMBER, "N", "default: 500", &o.max_connections, 4, 100000 },
		{ "token-file", FLAG_PATH, "FILE", "its first line is the token that requests need", &o.token_file, 0,
		  0 },
		{ "webhook", FLAG_TEXT, "URL", "alerts are posted there as JSON (default: nobody is told)",
		  &o.webhook_url, 0, 0 },
		{ "webhook-secret-file", FLAG_PATH, "FILE",
		  "its first line is the key by which posts are signed: X-Dptrack-Signature: sha256=HMAC of the body",
		  &o.webhook_secret_file, 0, 0 },
		{ "help", FLAG_SWITCH, "", "this text", &o.help, 0, 0 },
		{ 0 },
	};
	struct cli_line line = { .cmd = &cli_serve, .table = table, .help = &o.help };
	int rc = cli_line_read(&line, argc, argv, err);

	if (!rc && !cli_span(o.archive_after, &o.archive_after_ms))
		rc = err_set(err, ERR_USAGE, "--archive-after %s: want a span such as 30m, 12h or 7d, or 0",
			     o.archive_after);
	if (!rc)
		rc = source_place(&o.db, err);
	if (!o.logdir && !store_is_address(o.db))
		o.logdir = "runs";
	if (!rc)
		rc = serve_until_signal(&o, err);
	cli_line_done(&line);
	return rc > 0 ? 0 : rc;
}

const struct cli_command cli_serve = {
	.name = "serve", .group = "Serve", .words = "", .summary = "the page and the REST API over a folder of runs",
	.run = serve_run
};
