/* SPDX-License-Identifier: Apache-2.0 */
/* client.c: HTTP/1.1 over one persistent connection: the minimum that the server's replies need. */
#include "tests/bench/parts/client.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tracker/base/clock.h"

#define CLIENTS_MAX 64

void client_die(const char *what, const char *more)
{
	fprintf(stderr, "bench: %s: %s\n", what, more);
	exit(1);
}

/* --- the server -------------------------------------------------------------------------------------------- */

void client_find_build(struct client_server *s, const char *self)
{
	const char *given = getenv("builddir");
	char *slash;
	int i;

	if (!realpath(given ? given : self, s->build))
		client_die(self, strerror(errno));
	for (i = 0; !given && i < 3; i++)
		if ((slash = strrchr(s->build, '/')))
			*slash = '\0';
}

static void exec_server(const struct client_server *s, int out, bool slow)
{
	char program[PATH_MAX + 16], preload[PATH_MAX + 40];

	snprintf(program, sizeof program, "%s/dptrack", s->build);
	snprintf(preload, sizeof preload, "%s/tests/tracker/.libs/failio.so", s->build);
	if (slow) {
		setenv("LD_PRELOAD", preload, 1);
		setenv("FAILIO", "syncs=0.01", 1);
	}
	dup2(out, 1);
	execl(program, program, "serve", "--logdir", s->folder, "--port", "0", (char *)NULL);
	_exit(127);
}

void client_make_folder(struct client_server *s, const char *dir)
{
	if (snprintf(s->folder, sizeof s->folder, "%s/dptrack-bench-XXXXXX", dir) >= (int)sizeof s->folder ||
	    !mkdtemp(s->folder))
		client_die(s->folder, strerror(errno));
}

void client_remove_folder(struct client_server *s)
{
	char command[PATH_MAX + 16];

	snprintf(command, sizeof command, "rm -rf '%s'", s->folder);
	if (system(command))
		client_die("removing", s->folder);
}

void client_launch(struct client_server *s, bool slow)
{
	int ends[2];

	if (pipe(ends))
		client_die("pipe", strerror(errno));
	s->pid = fork();
	if (!s->pid)
		exec_server(s, ends[1], slow);
	close(ends[1]);
	s->out = ends[0];
}

void client_wait_line(struct client_server *s)
{
	char line[300] = "";
	const char *colon;
	size_t have = 0;
	ssize_t n;

	while (have < sizeof line - 1 && !memchr(line, '\n', have) &&
	       (n = read(s->out, line + have, sizeof line - 1 - have)) > 0)
		have += (size_t)n;
	close(s->out);
	colon = strrchr(line, ':');
	s->port = colon ? (int)strtol(colon + 1, NULL, 10) : 0;
	if (!s->port)
		client_die("the server did not start", line);
}

void client_serve(struct client_server *s, bool slow)
{
	client_launch(s, slow);
	client_wait_line(s);
}

void client_end(struct client_server *s)
{
	kill(s->pid, SIGTERM);
	waitpid(s->pid, NULL, 0);
}

void client_start(struct client_server *s, const char *dir, bool slow)
{
	client_make_folder(s, dir);
	client_serve(s, slow);
}

void client_stop(struct client_server *s)
{
	client_end(s);
	client_remove_folder(s);
}

double client_resident_mb(const struct client_server *s, bool highest)
{
	const char *want = highest ? "VmHWM:" : "VmRSS:";
	char path[40], line[200];
	double kb = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/status", (int)s->pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof line, f))
		if (!strncmp(line, want, 6))
			kb = strtod(line + 6, NULL);
	if (f)
		fclose(f);
	return kb / 1024;
}

/* --- requests ---------------------------------------------------------------------------------------------- */

void client_connect(struct client *c, const struct client_server *s, int number)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)s->port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int one = 1;

	c->server = s;
	c->number = number;
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof to))
		client_die("connecting", strerror(errno));
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

void client_close(struct client *c)
{
	close(c->fd);
}

static void send_all(struct client *c, struct iovec *v, int n)
{
	while (n) {
		ssize_t done = writev(c->fd, v, n);

		if (done < 0)
			client_die("sending", strerror(errno));
		for (; n && (size_t)done >= v->iov_len; v++, n--)
			done -= (ssize_t)v->iov_len;
		if (n) {
			v->iov_base = (char *)v->iov_base + done;
			v->iov_len -= (size_t)done;
		}
	}
}

static const char *receive(struct client *c)
{
	size_t have = 0, want = 0;
	char *body = NULL;
	const char *length;
	ssize_t n;

	while (!body || have < want) {
		n = recv(c->fd, c->reply + have, CLIENT_REPLY_MAX - 1 - have, 0);
		if (n <= 0)
			client_die("receiving", n ? strerror(errno) : "the server closed the connection");
		have += (size_t)n;
		c->reply[have] = '\0';
		body = body ? body : strstr(c->reply, "\r\n\r\n");
		length = body && !want ? strcasestr(c->reply, "\r\nContent-Length:") : NULL;
		if (length)
			want = (size_t)(body + 4 - c->reply) + strtoul(length + 17, NULL, 10);
	}
	if (strncmp(c->reply, "HTTP/1.1 20", 11))
		client_die("refused", c->reply);
	return body + 4;
}

const char *client_request(struct client *c, const char *method, const char *path, const struct buf *body,
			   const char *type)
{
	char head[600];
	int n = snprintf(head, sizeof head,
			 "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n",
			 method, path, c->server->port, type, body ? body->len : 0);
	struct iovec v[2] = { { head, (size_t)n }, { body ? body->data : head, body ? body->len : 0 } };

	send_all(c, v, body ? 2 : 1);
	return receive(c);
}

void client_make_run(struct client *c)
{
	struct buf body;
	const char *id;

	buf_init(&body, 1000);
	buf_addf(&body, "{\"experiment\":\"bench\",\"name\":\"client %d\"}", c->number);
	id = strstr(client_request(c, "POST", "/api/v1/runs", &body, "application/json"), "\"id\":\"");
	if (!id)
		client_die("no run", c->reply);
	snprintf(c->run, sizeof c->run, "%.32s", id + 6);
	buf_done(&body);
}

uint64_t client_stored(struct client *c)
{
	char path[100];
	const char *at;
	uint64_t sum = 0;

	snprintf(path, sizeof path, "/api/v1/runs/%s", c->run);
	at = client_request(c, "GET", path, NULL, "text/plain");
	while ((at = strstr(at, "\"count\":"))) {
		at += 8;
		sum += strtoull(at, NULL, 10);
	}
	return sum;
}

uint64_t client_metric(struct client *c, const char *name)
{
	char line[100];
	const char *at;

	snprintf(line, sizeof line, "\n%s ", name);
	at = strstr(client_request(c, "GET", "/metrics", NULL, "text/plain"), line);
	return at ? strtoull(at + strlen(line), NULL, 10) : 0;
}

struct event_text client_text(const char *s)
{
	return (struct event_text){ s, strlen(s) };
}

double client_run_all(void *clients, size_t bytes, int n, void *(*fn)(void *arg))
{
	pthread_t threads[CLIENTS_MAX];
	double began = clock_mono_s();
	int i;

	for (i = 0; i < n; i++)
		if (n > CLIENTS_MAX || pthread_create(&threads[i], NULL, fn, (char *)clients + (size_t)i * bytes))
			client_die("threads", "cannot start one");
	for (i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	return clock_mono_s() - began;
}

int client_by_size(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return (a > b) - (a < b);
}
