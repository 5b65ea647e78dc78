/* file_uploader.c: the thread and its queue, which is shared under one lock; requests are made outside it. */
#include "tracker/sink/file_uploader.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/buf.h"
#include "tracker/base/clock.h"
#include "tracker/base/cond.h"
#include "tracker/base/file_map.h"
#include "tracker/sink/http_client.h"
#include "tracker/sink/worker.h"

#define BACKOFF_FIRST_S 0.5
#define BACKOFF_MAX_S 30.0
#define CLOSING_BACKOFF_S 0.5 /* while somebody waits in close */
#define PATH_BYTES_MAX (64u << 10)

struct parcel {
	struct parcel *next;
	char *name;  /* behind the path, in the same memory */
	char path[];
};

struct file_uploader {
	struct worker worker;
	char run_id[33];
	struct http *http;
	/* under the worker's lock */
	struct parcel *first, **end;
	size_t refused;
	/* the thread's own */
	double backoff_s; /* 0: the last request was answered well */
};

enum outcome { TAKEN, LATER, REFUSED };

static void courier_free(void *own)
{
	struct file_uploader *c = own;

	while (c->first) {
		struct parcel *p = c->first;

		c->first = p->next;
		free(p);
	}
	http_close(c->http);
	worker_done(&c->worker);
	free(c);
}

/* An answer that a repeat may change: the run is not known there yet, the server is busy, or asks for a token. */
static bool may_change(long status)
{
	return status == 401 || status == 403 || status == 404 || status == 408 || status == 429 || status >= 500;
}

static enum outcome judge(struct file_uploader *c, const struct parcel *p, const struct http_reply *reply, struct err *err)
{
	char why[400], text[900];

	if (reply->status / 100 == 2)
		return TAKEN;
	http_reply_reason(reply, why, sizeof(why));
	err_set(err, ERR_PEER, "%s", why);
	if (may_change(reply->status))
		return LATER;
	snprintf(text, sizeof(text), "the server does not take the file \"%.200s\": %s", p->name, why);
	worker_say(&c->worker, text);
	return REFUSED;
}

static enum outcome deliver(struct file_uploader *c, const struct parcel *p, double deadline_s, struct err *err)
{
	struct file_map map = { 0 };
	struct http_reply reply;
	struct buf path;
	enum outcome how = REFUSED;

	if (file_map_open(&map, p->path, err)) {
		worker_say(&c->worker, err->text);
		return REFUSED;
	}
	buf_init(&path, PATH_BYTES_MAX);
	buf_addf(&path, "/api/v1/runs/%s/artifacts/", c->run_id);
	http_add_path(&path, p->name);
	if (buf_failed(&path)) {
		worker_say(&c->worker, "the name of a file is too long to be sent");
	} else if (http_send(c->http, &(struct http_request){ .method = "PUT", .path = path.data,
							      .body = map.bytes ? (const void *)map.bytes : "",
							      .body_bytes = map.n, .deadline_s = deadline_s },
			     &reply, err)) {
		how = LATER;
	} else {
		how = judge(c, p, &reply, err);
		http_reply_done(&reply);
	}
	buf_done(&path);
	file_map_close(&map);
	return how;
}

/* With the lock held, given up meanwhile: one request for the first that waits. */
static void send_first(struct file_uploader *c)
{
	struct parcel *p = c->first;
	double deadline_s = c->worker.stop ? c->worker.deadline_s : 0;
	struct err err = ERR_INIT;
	enum outcome how;

	pthread_mutex_unlock(&c->worker.lock);
	how = deliver(c, p, deadline_s, &err);
	if (how == LATER && !c->backoff_s) {
		char text[640];

		snprintf(text, sizeof(text), "%s; files are kept and sent again later", err.text);
		worker_say(&c->worker, text);
	}
	pthread_mutex_lock(&c->worker.lock);
	c->first = p->next;
	c->end = c->first ? c->end : &c->first;
	if (how == LATER) {
		p->next = NULL;
		*c->end = p;
		c->end = &p->next;
		c->backoff_s = c->backoff_s ? fmin(2 * c->backoff_s, BACKOFF_MAX_S) : BACKOFF_FIRST_S;
		return;
	}
	c->refused += how == REFUSED;
	c->backoff_s = 0;
	free(p);
}

/* With the lock held: waits until there is something to send; false when the thread shall end. */
static bool wait_for_work(struct file_uploader *c)
{
	double begin_s = clock_mono_s();

	for (;;) {
		double now = clock_mono_s(), due_s = begin_s + c->backoff_s;

		if (c->worker.stop && (!c->first || now >= c->worker.deadline_s))
			return false;
		if (c->worker.stop)
			due_s = fmin(fmin(due_s, begin_s + CLOSING_BACKOFF_S), c->worker.deadline_s);
		if (c->first && now >= due_s)
			return true;
		cond_wait_until(&c->worker.changed, &c->worker.lock, c->first ? due_s : INFINITY);
	}
}

static void courier_run(void *own)
{
	struct file_uploader *c = own;

	while (wait_for_work(c))
		send_first(c);
}

int file_uploader_start(struct file_uploader **ret, const struct file_uploader_opts *opts, struct err *err)
{
	struct file_uploader *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return err_set(err, ERR_NOMEM, "out of memory");
	worker_init(&c->worker, &(struct worker_opts){ .name = "dptrack-files", .own = c, .run = courier_run,
						       .free = courier_free, .notice = opts->notice,
						       .user = opts->user });
	c->end = &c->first;
	snprintf(c->run_id, sizeof(c->run_id), "%s", opts->run_id);
	rc = http_open(&c->http, opts->url, opts->token, err);
	if (!rc)
		rc = worker_start(&c->worker, err);
	if (rc) {
		courier_free(c);
		return rc;
	}
	*ret = c;
	return 0;
}

int file_uploader_send(struct file_uploader *c, const char *path, const char *name)
{
	size_t path_n = strlen(path) + 1, name_n = strlen(name) + 1;
	struct parcel *p = malloc(sizeof(*p) + path_n + name_n);

	if (!p)
		return ERR_NOMEM;
	p->next = NULL;
	p->name = p->path + path_n;
	memcpy(p->path, path, path_n);
	memcpy(p->name, name, name_n);
	pthread_mutex_lock(&c->worker.lock);
	*c->end = p;
	c->end = &p->next;
	pthread_cond_broadcast(&c->worker.changed);
	pthread_mutex_unlock(&c->worker.lock);
	return 0;
}

size_t file_uploader_stop(struct file_uploader *c, double wait_s)
{
	size_t lacking;

	if (!c)
		return 0;
	worker_end(&c->worker, c->http, wait_s);
	lacking = c->refused;
	for (const struct parcel *p = c->first; p; p = p->next)
		lacking++;
	worker_leave(&c->worker);
	return lacking;
}
