/* SPDX-License-Identifier: Apache-2.0 */
/* idle.c: a folder of very many idle runs: the time until a server answers, the time and work until it has scanned the
 * complete folder, its cost afterwards, and the delay until a new point of the only active run can be read, during the
 * scan and after it.
 *
 *	tests/bench/idle [--json] [--runs 100000] [--cold] [--dir DIR]
 *
 * Each run has one journal with a few points. --cold: drop the kernel's caches before the second start (as root).
 * --dir: where the folder is created (default: $TMPDIR or /tmp); it is deleted at the end. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/bench/parts/client.h"
#include "tests/bench/parts/rows.h"
#include "tracker/base/clock.h"
#include "tracker/event/event_encode.h"

#define A_FOLDER 1000 /* runs */
#define POINTS 5

struct bench {
	struct rows rows;
	int runs;
	bool cold;
	const char *dir;
	struct client_server server;
	int64_t step; /* of the active run's last point */
};

static void path_of(const struct bench *b, int number, bool file, char ret[PATH_MAX + 100])
{
	snprintf(ret, PATH_MAX + 100, "%s/exp-%03d/run-%06d%s", b->server.folder, number / A_FOLDER, number,
		 file ? "/events.out.tfevents.1700000000.here.1.0" : "");
}

static void append(const struct bench *b, int number, const struct buf *bytes)
{
	char path[PATH_MAX + 100];
	int fd;

	path_of(b, number, true, path);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, bytes->data, bytes->len) != (ssize_t)bytes->len)
		client_die(path, strerror(errno));
	close(fd);
}

static void encode_point(struct buf *out, int64_t step)
{
	encode_scalar(out, &(struct encode_scalar){ .key = client_text("loss"), .step = step,
						    .wall_time = clock_wall_s(),
						    .rank = EVENT_RANK_RUN, .value = 1.0 / (double)(step + 1) });
}

static void make_run(const struct bench *b, int number, struct buf *bytes)
{
	char path[PATH_MAX + 100], run[40], writer[40], name[40];
	int i;

	path_of(b, number, false, path);
	if (number % A_FOLDER == 0) {
		*strrchr(path, '/') = '\0';
		mkdir(path, 0700);
		path_of(b, number, false, path);
	}
	if (mkdir(path, 0700))
		client_die(path, strerror(errno));
	snprintf(run, sizeof run, "%032x", 0xa0000000u + (unsigned)number);
	snprintf(writer, sizeof writer, "%032x", 0xb0000000u + (unsigned)number);
	snprintf(name, sizeof name, "run-%d", number);
	buf_reset(bytes);
	encode_header(bytes, 1.7e9, &(struct event_header){
		.format = 1, .run_id = client_text(run), .writer_id = client_text(writer), .rank = 0, .world_size = 1,
		.experiment = client_text("idle"), .run_name = client_text(name), .segment = 0, .first_step = 1,
		.first_epoch = 1,
		.host = client_text("here"), .version = client_text("1"),
	});
	for (i = 0; i < POINTS; i++)
		encode_point(bytes, i);
	append(b, number, bytes);
}

/* User and system time of the server. */
static double cpu_s(const struct bench *b)
{
	char path[40], text[1000] = "";
	unsigned long user = 0, kernel = 0;
	const char *at;
	int fd;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)b->server.pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
		client_die(path, strerror(errno));
	close(fd);
	at = strrchr(text, ')');
	if (!at || sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &kernel) != 2)
		client_die(path, "cannot be read");
	return (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
}

static bool scanning(struct client *c)
{
	return strstr(client_request(c, "GET", "/health?verbose=1", NULL, "text/plain"), "\"scanning\":true") != NULL;
}

/* Seconds from writing a point until it can be read. */
static double point_seen_after(struct bench *b, struct client *c)
{
	struct buf bytes;
	char path[100], want[60];
	double began = clock_mono_s();

	buf_init(&bytes, 10000);
	encode_point(&bytes, ++b->step);
	append(b, b->runs / 2, &bytes);
	buf_done(&bytes);
	snprintf(path, sizeof path, "/api/v1/runs/%032x", 0xa0000000u + (unsigned)(b->runs / 2));
	snprintf(want, sizeof want, "\"last_step\":%lld", (long long)b->step);
	while (!strstr(client_request(c, "GET", path, NULL, "text/plain"), want)) {
		if (clock_mono_s() > began + 300)
			client_die("a new point", "is not seen");
		clock_sleep_s(0.002);
	}
	return clock_mono_s() - began;
}

/* Commands find the server's address in the store's lock, before it is printed. */
static void wait_for_address(struct bench *b)
{
	char path[PATH_MAX + 40], text[600];
	const char *colon;
	ssize_t n;
	int fd;

	snprintf(path, sizeof path, "%s/dptrack.db.lock", b->server.folder);
	for (b->server.port = 0; !b->server.port; clock_sleep_s(0.001)) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
		close(fd);
		text[n > 0 ? n : 0] = '\0';
		colon = strstr(text, "127.0.0.1:");
		b->server.port = colon ? (int)strtol(colon + 10, NULL, 10) : 0;
	}
}

static void start(struct bench *b, const char *name)
{
	struct client c;
	char row[80];
	double began, looked, worst = 0, took;

	began = clock_mono_s();
	client_launch(&b->server, false);
	wait_for_address(b);
	client_connect(&c, &b->server, 0);
	client_request(&c, "GET", "/api/v1/runs?limit=10", NULL, "text/plain");
	snprintf(row, sizeof row, "%s: first answer after", name);
	rows_print(&b->rows, row, "ms", (clock_mono_s() - began) * 1e3, 0);
	client_wait_line(&b->server);
	snprintf(row, sizeof row, "%s: printed line after", name);
	rows_print(&b->rows, row, "ms", (clock_mono_s() - began) * 1e3, 0);
	if (b->step)
		while (scanning(&c)) {
			took = point_seen_after(b, &c);
			worst = took > worst ? took : worst;
		}
	while (scanning(&c))
		clock_sleep_s(0.01);
	looked = clock_mono_s() - began;
	snprintf(row, sizeof row, "%s: all folders looked at after", name);
	rows_print(&b->rows, row, "s", looked, 0);
	snprintf(row, sizeof row, "%s: processor time by then", name);
	rows_print(&b->rows, row, "s", cpu_s(b), 0);
	snprintf(row, sizeof row, "%s: a new point seen meanwhile after", name);
	if (worst > 0)
		rows_print(&b->rows, row, "s", worst, 1);
	client_close(&c);
}

static void stay(struct bench *b)
{
	struct client c;
	double used, worst = 0, took;
	int i;

	client_connect(&c, &b->server, 0);
	for (i = 0; i < 10; i++) {
		took = point_seen_after(b, &c);
		worst = took > worst ? took : worst;
	}
	rows_print(&b->rows, "idle: a new point seen after", "s", worst, 1);
	client_close(&c);
	clock_sleep_s(3);
	used = cpu_s(b);
	clock_sleep_s(10);
	rows_print(&b->rows, "idle: of a core", "%", (cpu_s(b) - used) * 10, 1);
	rows_print(&b->rows, "idle: resident", "MB", client_resident_mb(&b->server, false), 0);
}

static void forget_caches(void)
{
	int fd;

	sync();
	fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "3", 1) != 1)
		client_die("/proc/sys/vm/drop_caches", strerror(errno));
	close(fd);
}

static void measure(struct bench *b)
{
	struct client *c = calloc(1, sizeof *c);
	double began;
	struct buf bytes;
	int i;

	if (!c)
		client_die("client", "out of memory");
	client_make_folder(&b->server, b->dir);
	buf_init(&bytes, 100000);
	for (i = 0; i < b->runs; i++)
		make_run(b, i, &bytes);
	buf_done(&bytes);
	began = clock_mono_s();
	client_serve(&b->server, false);
	client_connect(c, &b->server, 0);
	while (scanning(c))
		clock_sleep_s(0.05);
	rows_print(&b->rows, "new runs read", "runs/s", b->runs / (clock_mono_s() - began), 0);
	b->step = POINTS - 1;
	point_seen_after(b, c);
	client_close(c);
	client_end(&b->server);
	start(b, "again");
	stay(b);
	client_end(&b->server);
	if (b->cold) {
		forget_caches();
		start(b, "cold");
		client_end(&b->server);
	}
	client_remove_folder(&b->server);
	free(c);
}

int main(int argc, char **argv)
{
	static struct bench b = { .runs = 100000 };
	int i;

	b.dir = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json"))
			b.rows.json = true;
		else if (!strcmp(argv[i], "--cold"))
			b.cold = true;
		else if (!strcmp(argv[i], "--runs") && i + 1 < argc)
			b.runs = (int)strtol(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--dir") && i + 1 < argc)
			b.dir = argv[++i];
		else
			return fprintf(stderr, "usage: idle [--json] [--runs N] [--cold] [--dir DIR]\n"), 2;
	}
	if (b.runs < 2 || b.runs > 10000000)
		return fprintf(stderr, "idle: 2 to 10000000 runs\n"), 2;
	client_find_build(&b.server, argv[0]);
	measure(&b);
	if (b.rows.json)
		printf("}\n");
	return 0;
}
