/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_serve.c: `dptrack serve`: runs store, follower and server in one process until a signal. */
#include "tracker/base/file.h"
#include "web/cli/cli.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/base/log.h"
#include "tracker/base/run_folders.h"
#include "tracker/mem/mem.h"
#include "web/assets/asset.h"
#include "web/server/server.h"
#include "web/store/alert/alert.h"
#include "web/store/files/artifacts.h"
#include "web/store/maintenance/maintenance.h"
#include "web/webhook/webhook.h"

/* More than all request bodies that the server holds: its threads must never wait for the disk here, as readers would
 * wait with them. */
#define QUEUE_BYTES ((size_t)512 << 20)

#define SCAN_WAIT_S 3.0
#define NEAR_MAX 1000 /* folders compared with a name */

struct serve_options {
	const char *logdir, *host, *db, *artifacts, *token_file, *tls_cert, *tls_key, *docs;
	const char *archive_after, *backup_dir, *oidc_file, *retention_every;
	struct webhook_opts webhook;
	int64_t archive_after_ms, retention_every_ms;
	int port, max_connections, cache_mib, artifact_mib, drain_s;
	bool help, behind_proxy, hsts;
	char token[200]; /* "": no fixed token */
	char owner_token[TOKEN_TEXT_MAX], backup_room[PATH_MAX];
	struct store_paths paths;
	struct store *store;
	struct follow *follow;
	struct server *server;
	struct alert_watch *watch;
	struct retention_keeper *keeper; /* NULL: no rules are applied here */
	struct webhook *poster; /* NULL: no alerts are posted */
	struct docs_site *site; /* NULL: no documents */
	struct oidc *oidc;	/* NULL: no provider signs persons in */
	sigset_t signals;
	bool reloads; /* SIGHUP reads certificate and token file again; else it ends, or is ignored */
	bool fresh;   /* there was no folder logdir */
};

/* Reads the fixed token from --token-file, else from DPTRACK_TOKEN. */
static int read_fixed_token(struct serve_options *o, struct err *err)
{
	const struct token_chosen chosen = { o->token, sizeof(o->token),
					     o->token_file ? "--token-file" : "DPTRACK_TOKEN" };
	const char *env = getenv("DPTRACK_TOKEN");

	if (o->token_file)
		return token_chosen_file(&chosen, o->token_file, err);
	return env && *env ? token_chosen_take(&chosen, env, strlen(env), err) : 0;
}

/* The token in the lock file is for commands of this user on this machine, the fixed one for other people. */
static int set_fixed_tokens(struct serve_options *o, struct err *err)
{
	char text[TOKEN_TEXT_MAX], hash[TOKEN_HASH_MAX];
	int rc = token_draw(text, hash, err);

	if (rc)
		return rc;
	/* a token without a name needs no prefix */
	snprintf(o->owner_token, sizeof(o->owner_token), "%s", text + 4);
	rc = token_fix(o->store, o->owner_token, TOKEN_ADMIN, false, err);
	if (!rc && o->token[0])
		rc = token_fix(o->store, o->token, TOKEN_ADMIN, true, err);
	return rc;
}

static bool is_folder(const char *parent, const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	return *name != '.' && file_join(path, sizeof(path), parent, name) && !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* Says that there was no folder of that name, and which folder next to it may be meant. */
static void log_fresh_folder(const char *logdir)
{
	char parent[PATH_MAX];
	const char *slash = strrchr(logdir, '/'), *name = slash ? slash + 1 : logdir, *names[NEAR_MAX], *near;
	struct dirent *e;
	size_t n = 0;
	DIR *d;

	snprintf(parent, sizeof(parent), "%.*s", name > logdir ? (int)(name - logdir) : 1,
		 name > logdir ? logdir : ".");
	d = opendir(parent);
	while (d && n < NEAR_MAX && (e = readdir(d)))
		if (strcmp(e->d_name, name) && is_folder(parent, e->d_name) && (names[n] = mem_strdup(e->d_name)))
			n++;
	if (d)
		closedir(d);
	near = flags_nearest(name, names, n);
	if (near)
		log_warn("there was no folder %s: made an empty one: did you mean %s%s?", logdir,
			 name > logdir ? parent : "", near);
	else
		log_info("there was no folder %s: made an empty one", logdir);
	while (n)
		free((char *)(uintptr_t)names[--n]);
}

/* Opens the store. If another server has it open, the error names that server's address. */
static int open_served_store(struct serve_options *o, struct err *err)
{
	struct store_holder holder;
	int rc;

	o->fresh = o->logdir && access(o->logdir, F_OK);
	rc = store_locate(&o->paths, o->logdir, o->db, err);
	if (rc)
		return rc;
	if (o->paths.elsewhere)
		log_info("%s is not usable for the store: it is stored in %s", o->logdir, o->paths.db);
	rc = store_open(&o->store, &(struct store_opts){ .db_path = o->paths.db, .logdir = o->logdir,
		.artifacts = o->artifacts ? o->artifacts : o->paths.artifacts, .artifacts_by_default = !o->artifacts,
		.artifact_max = (uint64_t)o->artifact_mib << 20, .queue_bytes = QUEUE_BYTES,
		.cache_mib = o->cache_mib, .archive_after_ms = o->archive_after_ms }, err);
	if (rc == ERR_BUSY && !store_holder(&holder, o->paths.db, NULL) && holder.address[0])
		return err_set(err, ERR_BUSY, "%s is already served at %s (process %d)", o->logdir, holder.address,
			       holder.pid);
	return rc;
}

/* Descriptors of threads, store and journals; one connection in four also sends a file. */
enum { FILES_OF_SERVER = 40 };

/* Raises the limit of open files, and serves only as many connections as it allows. */
static void raise_file_limit(struct serve_options *o)
{
	struct rlimit limit;
	rlim_t most;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return;
	most = limit.rlim_cur > FILES_OF_SERVER + 5 ? (limit.rlim_cur - FILES_OF_SERVER) / 5 * 4 : 4;
	if (most >= (rlim_t)o->max_connections)
		return;
	log_warn("the limit of %llu open files leaves places for %llu connections instead of %d: raise it (ulimit -n, "
		 "LimitNOFILE=)", (unsigned long long)limit.rlim_cur, (unsigned long long)most, o->max_connections);
	o->max_connections = (int)most;
}

/* A terminal that closes ends its server; nohup makes it ignore that. A service manager has no terminal: there SIGHUP
 * asks for a reload. */
static bool is_service(void)
{
	struct sigaction hangup;
	int fd = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd >= 0)
		close(fd);
	return fd < 0 && !sigaction(SIGHUP, NULL, &hangup) && hangup.sa_handler != SIG_IGN;
}

static void block_signals(struct serve_options *o)
{
	o->reloads = is_service();
	sigemptyset(&o->signals);
	sigaddset(&o->signals, SIGINT);
	sigaddset(&o->signals, SIGTERM);
	if (o->reloads)
		sigaddset(&o->signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &o->signals, NULL); /* threads started later inherit it */
}

static bool end_signal(int signal)
{
	return signal > 0 && signal != SIGHUP;
}

/* Waits for the first scan, so that a folder of usual size is read when the address is printed. A larger one is read on
 * while it is served. Sets *ret_stop if a signal arrived in between. */
static int wait_for_scan(struct serve_options *o, bool *ret_stop, struct err *err)
{
	double until_s = clock_mono_s() + SCAN_WAIT_S;
	struct timespec none = { 0 };
	struct follow_stats stats;
	int rc;

	while ((rc = follow_scan_wait(o->follow, 0.1, err)) == ERR_BUSY && !*ret_stop && clock_mono_s() < until_s)
		*ret_stop = end_signal(sigtimedwait(&o->signals, NULL, &none));
	if ((rc && rc != ERR_BUSY) || *ret_stop)
		return rc == ERR_BUSY ? 0 : rc;
	follow_stats(o->follow, &stats);
	if (stats.scanning)
		log_info("still reading %s (%llu folders so far); see /health?verbose=1 for the progress", o->logdir,
			 (unsigned long long)stats.folders);
	if (stats.note[0])
		log_warn("%s", stats.note);
	return 0;
}

/* Creates the artifact folder, or connects to the object store. The sandbox of the answering threads allows neither
 * later. */
static int prepare_artifact_folder(struct serve_options *o, struct server_opts *so, struct err *err)
{
	const char *folder = artifacts_folder(store_artifacts(o->store));
	struct stat st;

	so->artifacts_path = folder ? folder : "";
	so->logdir = o->logdir;
	if (folder && mkdir(folder, 0700) && errno != EEXIST && o->artifacts)
		return err_set_errno(err, errno, "--artifacts %s", folder);
	if (folder && !stat(folder, &st) && !S_ISDIR(st.st_mode))
		return err_set(err, ERR_USAGE, "artifacts need a folder, but %s is not a directory", folder);
	return artifacts_connect(store_artifacts(o->store), err);
}

/* Starts before the sandbox is set up: the threads of alerts must be outside it. */
static int start_alerts(struct serve_options *o, struct err *err)
{
	int rc = 0;

	if (!o->webhook.url)
		o->webhook.url = getenv("DPTRACK_WEBHOOK");
	if (!(o->webhook.url && *o->webhook.url) && (o->webhook.secret_file || o->webhook.format))
		return err_set(err, ERR_USAGE, "--webhook-secret-file and --webhook-format: also give --webhook URL");
	if (o->webhook.url && *o->webhook.url)
		rc = webhook_new(&o->poster, o->store, &o->webhook, err);
	if (!rc && o->poster)
		rc = webhook_start(o->poster, err);
	return rc ? rc : alert_watch_start(&o->watch, o->store, o->poster != NULL, err);
}

/* Reads the documents, those of --docs or of this installation, before the sandbox closes their folder. */
static int load_docs(struct serve_options *o, struct err *err)
{
	struct err damaged = ERR_INIT;
	char folder[PATH_MAX];

	if (o->docs)
		return docs_site_load(&o->site, o->docs, err);
	if (docs_site_locate(folder, sizeof(folder)) && docs_site_load(&o->site, folder, &damaged))
		log_warn("/docs is not served: %s", damaged.text);
	return 0;
}

static int resolve_backup_dir(struct serve_options *o, struct err *err)
{
	const char *given = o->backup_dir;
	struct stat st;

	if (!given)
		return 0;
	if (!realpath(given, o->backup_room) || stat(o->backup_room, &st) || !S_ISDIR(st.st_mode))
		return err_set(err, ERR_USAGE, "--backup-dir %s: no such folder: create it, or mount its disk", given);
	o->backup_dir = o->backup_room;
	return 0;
}

/* Starts before the sandbox is set up, as alerts do. Where the address is not that of browsers, the file has it. */
static int start_oidc(struct serve_options *o, struct err *err)
{
	const bool known = !o->behind_proxy && !server_public(o->server);
	int rc = o->oidc_file ? oidc_new(&o->oidc, o->oidc_file, known ? server_address(o->server) : NULL, err) : 0;

	if (rc || !o->oidc)
		return rc;
	token_need(o->store);
	return oidc_start(o->oidc, err);
}

/* Opens the store, binds the address and starts the server, then waits for the first scan. */
static int start_serving(struct serve_options *o, bool *ret_stop, struct err *err)
{
	struct server_opts so = {
		.host = o->host, .port = o->port, .max_connections = o->max_connections,
		.tls_cert = o->tls_cert, .tls_key = o->tls_key, .behind_proxy = o->behind_proxy, .hsts = o->hsts,
		.db_path = o->paths.db
	};
	struct api api = { .started_s = clock_wall_s() };
	int rc = read_fixed_token(o, err);

	if (!rc)
		rc = resolve_backup_dir(o, err);
	if (!rc)
		rc = load_docs(o, err);
	if (!rc)
		rc = open_served_store(o, err);
	if (!rc)
		rc = prepare_artifact_folder(o, &so, err);
	if (!rc)
		rc = set_fixed_tokens(o, err);
	if (!rc)
		so.has_token = token_needed(o->store) != 0 || o->oidc_file;
	if (!rc)
		rc = server_bind(&o->server, &so, err);
	if (!rc)
		rc = start_oidc(o, err);
	if (!rc && o->logdir)
		rc = follow_start(&o->follow, o->store,
				  &(struct follow_opts){ .logdir = o->logdir, .poll = o->paths.poll,
						       .network = o->paths.poll }, err);
	if (rc)
		return rc;
	api.backup_dir = o->backup_dir;
	api.store = o->store;
	api.follow = o->follow;
	api.docs = o->site;
	api.oidc = o->oidc;
	api.counters = server_counters(o->server);
	rc = start_alerts(o, err);
	if (!rc && o->retention_every_ms)
		rc = retention_keeper_start(&o->keeper, o->store, (double)o->retention_every_ms / 1000, err);
	if (!rc)
		rc = server_run(o->server, &api, err);
	if (!rc)
		rc = store_publish(o->store, server_address(o->server), o->owner_token, err);
	return rc || !o->follow ? rc : wait_for_scan(o, ret_stop, err);
}

/* Number of accounts of people other than ours: they can connect to a loopback address, too. */
static int count_other_people(void)
{
	FILE *f = fopen("/etc/passwd", "re");
	struct passwd *p;
	int n = 0;

	while (f && (p = fgetpwent(f)))
		n += p->pw_uid >= 1000 && p->pw_uid < 60000 && p->pw_uid != getuid() &&
		     !strstr(p->pw_shell, "nologin") && !strstr(p->pw_shell, "/false");
	if (f)
		fclose(f);
	return n;
}

static void log_certificate_note(void)
{
	char note[200];

	server_tls_note(note, sizeof(note));
	if (note[0])
		log_warn("%s", note);
}

static void log_access_rules(const struct serve_options *o)
{
	int others;

	if (token_needed(o->store)) {
		log_info("requests need a token (Authorization: Bearer, or as the password of any user; the page shows "
			 "a form for it)");
		if (server_public(o->server) && !o->tls_cert && !o->behind_proxy)
			log_warn("tokens and data are sent unencrypted: use --tls-cert and --tls-key, or a proxy with "
				 "TLS");
		return;
	}
	others = count_other_people();
	if (others)
		log_warn("%d other account%s of this machine can read and change the runs: dptrack token add NAME "
			 "--scope admin makes the server require a token",
			 others, others == 1 ? "" : "s");
}

/* Requests are still answered while a proxy learns from /ready that it must send no more. A second signal ends the
 * wait. */
static void wait_for_proxy_drain(struct serve_options *o)
{
	const struct timespec wait = { .tv_sec = o->drain_s };

	if (!o->drain_s)
		return;
	atomic_store(&server_counters(o->server)->draining, true);
	sigtimedwait(&o->signals, NULL, &wait);
}

/* Reads certificate and token file again. What cannot be read stays as it was. */
static void reload_files(struct serve_options *o)
{
	struct server_opts so = { .tls_cert = o->tls_cert, .tls_key = o->tls_key };
	struct err err = ERR_INIT;
	char old[sizeof(o->token)];

	if (o->tls_cert && server_reload(&so, &err))
		log_error("SIGHUP: %s: the last certificate stays in use", err.text);
	else if (o->tls_cert)
		log_info("SIGHUP: new connections use the certificate in %s", o->tls_cert);
	log_certificate_note();
	if (!o->token_file)
		return;
	memcpy(old, o->token, sizeof(old));
	if (read_fixed_token(o, &err) || token_refix(o->store, old, o->token, &err)) {
		memcpy(o->token, old, sizeof(old));
		log_error("SIGHUP: %s: the last token stays in use", err.text);
	} else {
		log_info("SIGHUP: the token of %s is in use", o->token_file);
	}
}

/* Prints the address first, so that a program that waits for that line does not wait for the check. */
static int serve_requests(struct serve_options *o, struct err *err)
{
	int sig = 0, rc;

	printf("dptrack: serving %s\n", server_address(o->server));
	fflush(stdout);
	rc = check_background(o->store, err);
	if (rc)
		return rc;
	log_access_rules(o);
	log_certificate_note();
	if (o->fresh)
		log_fresh_folder(o->logdir);
	while (!sigwait(&o->signals, &sig) && !end_signal(sig))
		reload_files(o);
	wait_for_proxy_drain(o);
	return 0;
}

/* Serves until the first signal, then stops every part. */
static int serve_until_signal(struct serve_options *o, struct err *err)
{
	bool stop = false;
	int rc;

	raise_file_limit(o);
	signal(SIGPIPE, SIG_IGN); /* a client that disconnects must not end the server */
	block_signals(o);
	rc = start_serving(o, &stop, err);
	if (!rc && !stop)
		rc = serve_requests(o, err);
	/* a second signal ends at once; acknowledged data is safe even then */
	pthread_sigmask(SIG_UNBLOCK, &o->signals, NULL);
	store_work_stop(o->store); /* a backup may be running */
	retention_keeper_stop(o->keeper);
	server_stop(o->server);
	follow_stop(o->follow);
	alert_watch_stop(o->watch);
	webhook_free(o->poster);
	oidc_free(o->oidc);
	docs_site_free(o->site);
	store_close(o->store);
	return rc;
}

/* Refuses options without effect, and completes the places of store and folder. */
static int check_serve_options(struct serve_options *o, struct err *err)
{
	int rc;

	if (o->hsts && !o->tls_cert && !o->behind_proxy)
		return err_set(err, ERR_USAGE, "--hsts: needs TLS: also give --tls-cert, or let a proxy encrypt");
	if (!cli_span(o->archive_after, &o->archive_after_ms))
		return err_set(err, ERR_USAGE, "--archive-after %s: expected a span such as 30m, 12h or 7d, or 0",
			       o->archive_after);
	if (!cli_span(o->retention_every ? o->retention_every : "1h", &o->retention_every_ms))
		return err_set(err, ERR_USAGE, "--retention-every %s: expected a span such as 10m, 1h or 1d, or 0",
			       o->retention_every);
	rc = source_place(&o->db, err);
	if (!o->logdir && !store_is_address(o->db))
		o->logdir = run_folders_dir(NULL);
	return rc;
}

/* Reads the flags and serves until a signal. */
static int run_serve_command(int argc, char **argv, struct err *err)
{
	struct serve_options o = { .host = "127.0.0.1", .port = 6007, .max_connections = 500, .archive_after = "1d" };
	const struct flag table[] = {
		{ "logdir", FLAG_PATH, "DIR",
		  "folder of runs, followed while they grow (default: DPTRACK_RUNS_DIR, or runs; none if the store is "
		  "in PostgreSQL)",
		  &o.logdir, 0, 0 },
		{ "host", FLAG_TEXT, "HOST", "address to listen on (default: 127.0.0.1)", &o.host, 0, 0 },
		{ "port", FLAG_NUMBER, "PORT", "port to listen on (default: 6007; 0: any free one)", &o.port, 0,
		  65535 },
		{ "db", FLAG_PATH, "FILE",
		  "the store (default: DPTRACK_DB, or DIR/dptrack.db); postgresql://USER@HOST/NAME: a store for "
		  "several processes",
		  &o.db, 0, 0 },
		{ "artifacts", FLAG_PATH, "DIR",
		  "artifacts (default: next to the store); s3://BUCKET/PREFIX or gs://BUCKET/PREFIX: in an object "
		  "store, with AWS's or Google's variables",
		  &o.artifacts, 0, 0 },
		{ "backup-dir", FLAG_PATH, "DIR",
		  "where clients may make backups (default: next to the store: dptrack.db.NAME)", &o.backup_dir, 0, 0 },
		{ "archive-after", FLAG_TEXT, "SPAN",
		  "with artifacts in an object store: also move the points of runs there that ended SPAN ago, "
		  "for example 30m, 12h, 7d (default: 1d; 0: never)",
		  &o.archive_after, 0, 0 },
		{ "retention-every", FLAG_TEXT, "SPAN", "apply the rules of retention so often (default: 1h; 0: never)",
		  &o.retention_every, 0, 0 },
		{ "max-artifact-mib", FLAG_NUMBER, "N", "largest artifact that is accepted, in MiB (default: 1048576)",
		  &o.artifact_mib, 1, 1048576 },
		{ "cache-mib", FLAG_NUMBER, "N",
		  "cache for rows of a store in PostgreSQL, in MiB (default: 256); half as much is used in addition "
		  "for points of charts",
		  &o.cache_mib, 1, 65536 },
		{ "tls-cert", FLAG_PATH, "FILE", "serve HTTPS with this certificate (PEM, followed by its chain)",
		  &o.tls_cert, 0, 0 },
		{ "tls-key", FLAG_PATH, "FILE", "the certificate's private key (PEM)", &o.tls_key, 0, 0 },
		{ "behind-proxy", FLAG_SWITCH, "",
		  "the server is behind a reverse proxy: trust its X-Forwarded-Host, -Proto and -For", &o.behind_proxy,
		  0, 0 },
		{ "hsts", FLAG_SWITCH, "", "browsers use only HTTPS for this host for a year, on all of its ports",
		  &o.hsts, 0, 0 },
		{ "drain", FLAG_NUMBER, "S",
		  "seconds between a signal and the end, while /ready replies 503 and requests are still answered "
		  "(default: 0)",
		  &o.drain_s, 0, 3600 },
		{ "max-connections", FLAG_NUMBER, "N", "most connections at a time (default: 500)", &o.max_connections,
		  4, 100000 },
		{ "docs", FLAG_PATH, "DIR",
		  "serve the documents in this folder at /docs (default: those that are installed)", &o.docs, 0, 0 },
		{ "token-file", FLAG_PATH, "FILE", "its first line is the token of requests", &o.token_file, 0, 0 },
		{ "oidc", FLAG_PATH, "FILE",
		  "persons sign in by the providers in this file (JSON; docs/guides/sign-in.md)", &o.oidc_file, 0, 0 },
		{ "webhook", FLAG_TEXT, "URL", "post alerts there (default: DPTRACK_WEBHOOK, or no posts)",
		  &o.webhook.url, 0, 0 },
		{ "webhook-format", FLAG_TEXT, "json|slack|discord|teams",
		  "the form of posts (default: by the host of the URL, or json)", &o.webhook.format, 0, 0 },
		{ "webhook-secret-file", FLAG_PATH, "FILE",
		  "its first line is the key that signs posts, which json requires: X-Dptrack-Signature: "
		  "sha256=HMAC of the body",
		  &o.webhook.secret_file, 0, 0 },
		{ "help", FLAG_SWITCH, "", "print this help", &o.help, 0, 0 },
		{ 0 },
	};
	struct cli_line line = { .cmd = &cli_serve, .table = table, .help = &o.help };
	int rc = cli_line_read(&line, argc, argv, err);

	if (!rc)
		rc = check_serve_options(&o, err);
	if (!rc)
		rc = serve_until_signal(&o, err);
	cli_line_done(&line);
	return rc > 0 ? 0 : rc;
}

const struct cli_command cli_serve = { .name = "serve",
				       .group = "Serve",
				       .words = "",
				       .summary = "serve the page and the REST API for a folder of runs",
				       .examples = "  dptrack serve\n"
						   "  dptrack serve --logdir runs --port 8080\n"
						   "  DPTRACK_DB=postgresql://user@host/name dptrack serve\n",
				       .run = run_serve_command };
