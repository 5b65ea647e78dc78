/* ingest.c: how many points a server takes durably over HTTP, by a client that costs little: JSON batches (v1 and MLflow's
 * log-batch), the same with a slow disk (10 ms more in every fdatasync), and journals in ranges of 1 MiB from 4 writers of
 * 200 series. What was acknowledged is read back and counted; each row beside its bound.
 *
 *	tests/bench/ingest [--json] [--seconds 60] [--batches 100] [--only TEXT] [--dir DIR]
 *
 * --seconds: of the journals. --only: rows whose name has this in it. --dir: where the stores are made (default: $TMPDIR or
 * /tmp); they are removed at the end. The slow disk wants tests/tracker/failio.la made (make check makes it). */
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/rows.h"
#include "tracker/base/clock.h"
#include "tracker/event/encode.h"

#define CLIENTS_MAX 64
#define RANGE_BYTES ((size_t)1 << 20)
#define SERIES 200
#define JOURNAL_WRITERS 4
#define REPLY_MAX ((size_t)1 << 20)

struct bench {
	struct rows rows;
	double seconds;
	int batches;
	const char *only;
	char build[PATH_MAX], folder[PATH_MAX];
	pid_t pid;
	int port;
};

struct client {
	struct bench *b;
	int fd, number;
	char run[40], reply[REPLY_MAX];
	struct buf *bodies; /* one a request */
	double *took;
	const char *path;
	/* journals */
	double begin_s;
	uint64_t points, points_early;
};

static void die(const char *what, const char *more)
{
	fprintf(stderr, "ingest: %s: %s\n", what, more);
	exit(1);
}

/* --- the server -------------------------------------------------------------------------------------------- */

static void exec_server(const struct bench *b, int out, bool slow)
{
	char program[PATH_MAX + 16], preload[PATH_MAX + 40];

	snprintf(program, sizeof program, "%s/dptrack", b->build);
	snprintf(preload, sizeof preload, "%s/tests/tracker/.libs/failio.so", b->build);
	if (slow) {
		setenv("LD_PRELOAD", preload, 1);
		setenv("FAILIO", "syncs=0.01", 1);
	}
	dup2(out, 1);
	execl(program, program, "serve", "--logdir", b->folder, "--port", "0", (char *)NULL);
	_exit(127);
}

static void start(struct bench *b, bool slow)
{
	char line[300] = "";
	const char *colon;
	size_t have = 0;
	ssize_t n;
	int ends[2];

	snprintf(strrchr(b->folder, '/'), 32, "/dptrack-ingest-XXXXXX");
	if (!mkdtemp(b->folder) || pipe(ends))
		die(b->folder, strerror(errno));
	b->pid = fork();
	if (!b->pid)
		exec_server(b, ends[1], slow);
	close(ends[1]);
	while (have < sizeof line - 1 && !memchr(line, '\n', have) && (n = read(ends[0], line + have, sizeof line - 1 - have)) > 0)
		have += (size_t)n;
	colon = strrchr(line, ':');
	b->port = colon ? (int)strtol(colon + 1, NULL, 10) : 0;
	if (!b->port)
		die("the server did not start", line);
}

static void stop(struct bench *b)
{
	char command[PATH_MAX + 16];

	kill(b->pid, SIGTERM);
	waitpid(b->pid, NULL, 0);
	snprintf(command, sizeof command, "rm -rf '%s'", b->folder);
	if (system(command))
		die("removing", b->folder);
}

/* --- requests ---------------------------------------------------------------------------------------------- */

static void connect_to(struct client *c)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)c->b->port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int one = 1;

	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof to))
		die("connecting", strerror(errno));
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static void send_all(struct client *c, struct iovec *v, int n)
{
	while (n) {
		ssize_t done = writev(c->fd, v, n);

		if (done < 0)
			die("sending", strerror(errno));
		for (; n && (size_t)done >= v->iov_len; v++, n--)
			done -= (ssize_t)v->iov_len;
		if (n) {
			v->iov_base = (char *)v->iov_base + done;
			v->iov_len -= (size_t)done;
		}
	}
}

/* The body of the reply, in c->reply. */
static const char *receive(struct client *c)
{
	size_t have = 0, want = 0;
	char *body = NULL;
	const char *length;
	ssize_t n;

	while (!body || have < want) {
		n = recv(c->fd, c->reply + have, REPLY_MAX - 1 - have, 0);
		if (n <= 0)
			die("receiving", n ? strerror(errno) : "the server closed the connection");
		have += (size_t)n;
		c->reply[have] = '\0';
		body = body ? body : strstr(c->reply, "\r\n\r\n");
		length = body && !want ? strcasestr(c->reply, "\r\nContent-Length:") : NULL;
		if (length)
			want = (size_t)(body + 4 - c->reply) + strtoul(length + 17, NULL, 10);
	}
	if (strncmp(c->reply, "HTTP/1.1 20", 11))
		die("refused", c->reply);
	return body + 4;
}

static const char *request(struct client *c, const char *method, const char *path, const struct buf *body, const char *type)
{
	char head[600];
	int n = snprintf(head, sizeof head, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n",
			 method, path, c->b->port, type, body ? body->len : 0);
	struct iovec v[2] = { { head, (size_t)n }, { body ? body->data : head, body ? body->len : 0 } };

	send_all(c, v, body ? 2 : 1);
	return receive(c);
}

static void make_run(struct client *c)
{
	struct buf body;
	const char *id;

	buf_init(&body, 1000);
	buf_addf(&body, "{\"experiment\":\"bench\",\"name\":\"client %d\"}", c->number);
	id = strstr(request(c, "POST", "/api/v1/runs", &body, "application/json"), "\"id\":\"");
	if (!id)
		die("no run", c->reply);
	snprintf(c->run, sizeof c->run, "%.32s", id + 6);
	buf_done(&body);
}

/* Points of all series of the client's run. */
static uint64_t stored(struct client *c)
{
	char path[100];
	const char *at;
	uint64_t sum = 0;

	snprintf(path, sizeof path, "/api/v1/runs/%s", c->run);
	at = request(c, "GET", path, NULL, "text/plain");
	while ((at = strstr(at, "\"count\":"))) {
		at += 8;
		sum += strtoull(at, NULL, 10);
	}
	return sum;
}

static struct client *make_clients(struct bench *b, int n)
{
	struct client *c = calloc((size_t)n, sizeof *c);
	int i;

	for (i = 0; c && i < n; i++) {
		c[i].b = b;
		c[i].number = i;
		connect_to(&c[i]);
	}
	return c ? c : (die("out of memory", "clients"), NULL);
}

static double run_all(struct client *c, int n, void *(*fn)(void *arg))
{
	pthread_t threads[CLIENTS_MAX];
	double began = clock_mono_s();
	int i;

	for (i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, fn, &c[i]))
			die("threads", "cannot start one");
	for (i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	return clock_mono_s() - began;
}

/* --- batches of JSON --------------------------------------------------------------------------------------- */

static void write_batch(struct client *c, struct buf *body, bool mlflow, int size, int number)
{
	int i;

	buf_init(body, (size_t)64 << 20);
	if (mlflow)
		buf_addf(body, "{\"run_id\":\"%s\",\"metrics\":[", c->run);
	else
		buf_adds(body, "{\"points\":[");
	for (i = number * size; i < (number + 1) * size; i++)
		buf_addf(body, mlflow ? "%s{\"key\":\"loss\",\"value\":%.17g,\"timestamp\":%lld,\"step\":%d}"
				      : "%s{\"key\":\"loss\",\"value\":%.17g,\"wall_time\":%lld.125,\"step\":%d}",
			 i > number * size ? "," : "", 1.0 / (1 + i), (mlflow ? 1795000000000LL : 1795000000LL) + i, i);
	buf_adds(body, mlflow ? "],\"params\":[],\"tags\":[]}" : "]}");
	if (buf_failed(body))
		die("out of memory", "bodies");
}

static void *send_batches(void *arg)
{
	struct client *c = arg;
	int i;

	for (i = 0; i < c->b->batches; i++) {
		double began = clock_mono_s();

		request(c, "POST", c->path, &c->bodies[i], "application/json");
		c->took[i] = clock_mono_s() - began;
	}
	return NULL;
}

static int by_size(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return (a > b) - (a < b);
}

static void prepare(struct client *c, bool mlflow, int size, double *took)
{
	char path[100];
	int i;

	make_run(c);
	snprintf(path, sizeof path, "/api/v1/runs/%s/metrics", c->run);
	c->path = mlflow ? "/api/2.0/mlflow/runs/log-batch" : strdup(path);
	c->bodies = calloc((size_t)c->b->batches, sizeof *c->bodies);
	c->took = took;
	for (i = 0; i < c->b->batches; i++)
		write_batch(c, &c->bodies[i], mlflow, size, i);
}

static void batches(struct bench *b, bool mlflow, int clients, int size, bool slow)
{
	int n = b->batches, i, k;
	double *took = calloc((size_t)(clients * n), sizeof *took), seconds, bound = clients > 1 ? 100000 : 0;
	struct client *c;
	char name[80], p[100];

	snprintf(name, sizeof name, "%s %d x %d%s", mlflow ? "log-batch" : "metrics", clients, size, slow ? ", slow disk" : "");
	if (b->only && !strstr(name, b->only))
		return;
	start(b, slow);
	c = make_clients(b, clients);
	for (i = 0; i < clients; i++)
		prepare(&c[i], mlflow, size, took + i * n);
	seconds = run_all(c, clients, send_batches);
	for (i = 0; i < clients; i++)
		if (stored(&c[i]) != (uint64_t)n * (uint64_t)size)
			die(name, "the points are not all there");
	rows_print(&b->rows, name, "pts/s", (double)clients * n * size / seconds, bound);
	qsort(took, (size_t)(clients * n), sizeof *took, by_size);
	snprintf(p, sizeof p, "%s: p50", name);
	rows_print(&b->rows, p, "ms", took[clients * n / 2] * 1e3, 0);
	snprintf(p, sizeof p, "%s: p99", name);
	rows_print(&b->rows, p, "ms", took[clients * n * 99 / 100] * 1e3, 250);
	for (i = 0; i < clients; i++) {
		for (k = 0; k < n; k++)
			buf_done(&c[i].bodies[k]);
		free(c[i].bodies);
		close(c[i].fd);
	}
	free(c);
	free(took);
	stop(b);
}

/* --- journals ---------------------------------------------------------------------------------------------- */

static struct event_text text(const char *s)
{
	return (struct event_text){ s, strlen(s) };
}

static void begin_journal(struct client *c, struct buf *b, const char *writer)
{
	snprintf(c->run, sizeof c->run, "%032x", 0xa00 + c->number);
	encode_header(b, clock_wall_s(), &(struct event_header){
		.format = 1, .run_id = text(c->run), .writer_id = text(writer), .rank = 0, .world_size = 1, .experiment = text("bench"),
		.run_name = text("journal"), .segment = 0, .first_step = 1, .first_epoch = 1, .host = text("here"), .version = text("1"),
	});
}

/* One step of all series. */
static void encode_step(struct buf *b, int64_t step)
{
	double now = clock_wall_s();
	char key[32];
	int k;

	for (k = 0; k < SERIES; k++) {
		snprintf(key, sizeof key, "layer/%03d/norm", k);
		encode_scalar(b, &(struct encode_scalar){ .key = text(key), .step = step, .wall_time = now, .rank = EVENT_RANK_RUN,
							  .value = (double)(float)(1.0 / (double)(step + k)) });
	}
}

static void *send_journal(void *arg)
{
	struct client *c = arg;
	char writer[40], path[200];
	uint64_t offset = 0, pending = 0;
	int64_t step = 0;
	struct buf b;

	buf_init(&b, RANGE_BYTES * 2);
	snprintf(writer, sizeof writer, "%032x", 0xb00 + c->number);
	begin_journal(c, &b, writer);
	while (clock_mono_s() < c->begin_s + c->b->seconds) {
		while (b.len + 100 * SERIES < RANGE_BYTES) {
			encode_step(&b, ++step);
			pending += SERIES;
		}
		snprintf(path, sizeof path, "/api/v1/runs/%s/journal?writer=%s&offset=%llu", c->run, writer, (unsigned long long)offset);
		request(c, "POST", path, &b, "application/octet-stream");
		offset += b.len;
		c->points += pending;
		if (clock_mono_s() < c->begin_s + 10)
			c->points_early = c->points;
		pending = 0;
		buf_reset(&b);
	}
	buf_done(&b);
	return NULL;
}

static uint64_t backlog(struct client *c)
{
	const char *at = strstr(request(c, "GET", "/metrics", NULL, "text/plain"), "\ndptrack_store_unfolded_points ");

	return at ? strtoull(at + 31, NULL, 10) : 0;
}

static void journals(struct bench *b)
{
	uint64_t points = 0, early = 0;
	double seconds, ended;
	struct client *c;
	int i;

	if (b->only && !strstr("journals", b->only))
		return;
	start(b, false);
	c = make_clients(b, JOURNAL_WRITERS);
	for (i = 0; i < JOURNAL_WRITERS; i++)
		c[i].begin_s = clock_mono_s();
	seconds = run_all(c, JOURNAL_WRITERS, send_journal);
	ended = clock_mono_s();
	for (i = 0; i < JOURNAL_WRITERS; i++) {
		points += c[i].points;
		early += c[i].points_early;
		if (stored(&c[i]) != c[i].points)
			die("journals", "the points are not all there");
	}
	rows_print(&b->rows, "journals: first 10 s", "pts/s", (double)early / (b->seconds < 10 ? b->seconds : 10), 1e6);
	rows_print(&b->rows, "journals: all the time", "pts/s", (double)points / seconds, 5e5);
	while (backlog(c) && clock_mono_s() < ended + 120)
		clock_sleep_s(0.1);
	rows_print(&b->rows, "journals: compacted after", "s", clock_mono_s() - ended, 60);
	free(c);
	stop(b);
}

static void find_build(struct bench *b, const char *self)
{
	const char *given = getenv("builddir");
	char *slash;
	int i;

	if (!realpath(given ? given : self, b->build))
		die(self, strerror(errno));
	for (i = 0; !given && i < 3; i++)
		if ((slash = strrchr(b->build, '/')))
			*slash = '\0';
}

int main(int argc, char **argv)
{
	struct bench b = { .seconds = 60, .batches = 100 };
	const char *dir = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
	int i;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json"))
			b.rows.json = true;
		else if (!strcmp(argv[i], "--seconds") && i + 1 < argc)
			b.seconds = strtod(argv[++i], NULL);
		else if (!strcmp(argv[i], "--batches") && i + 1 < argc)
			b.batches = (int)strtol(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--only") && i + 1 < argc)
			b.only = argv[++i];
		else if (!strcmp(argv[i], "--dir") && i + 1 < argc)
			dir = argv[++i];
		else
			return fprintf(stderr, "usage: ingest [--json] [--seconds S] [--batches N] [--only TEXT] [--dir DIR]\n"), 2;
	}
	if (b.batches < 1 || b.batches > 100000 || !(b.seconds > 0))
		return fprintf(stderr, "ingest: 1 to 100000 batches, for some seconds\n"), 2;
	snprintf(b.folder, sizeof b.folder - 32, "%s/x", dir);
	find_build(&b, argv[0]);
	batches(&b, false, 1, 1000, false);
	batches(&b, false, 8, 1000, false);
	batches(&b, false, 32, 100, false);
	batches(&b, true, 8, 1000, false);
	batches(&b, true, 32, 100, false);
	batches(&b, false, 8, 1000, true);
	journals(&b);
	if (b.rows.json)
		printf("}\n");
	return 0;
}
