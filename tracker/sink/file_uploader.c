/* SPDX-License-Identifier: Apache-2.0 */
/* file_uploader.c: the upload thread and its queue. One lock protects the queue; requests are made without it. */
#include "tracker/sink/sink.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "tracker/base/file.h"
#include "tracker/base/thread.h"
#include "tracker/curl/curl_request.h"
#include "tracker/sink/worker.h"

#define BACKOFF_FIRST_S 0.5
#define BACKOFF_MAX_S 30.0
#define CLOSING_BACKOFF_S 0.5 /* while a caller waits in close */
#define PATH_BYTES_MAX (64u << 10)

struct queued_file {
	struct queued_file *next;
	char *name; /* after the path, in the same allocation */
	char path[];
};

struct file_uploader {
	struct worker worker;
	char run_id[33];
	struct http *http;
	/* protected by the worker's lock */
	struct queued_file *first, **end;
	size_t refused;
	/* used by the thread only */
	double backoff_s; /* 0: the last request succeeded */
};

enum upload_result { UPLOADED, RETRY_LATER, REFUSED };

static void courier_free(void *own)
{
	struct file_uploader *c = own;

	while (c->first) {
		struct queued_file *p = c->first;

		c->first = p->next;
		free(p);
	}
	http_close(c->http);
	worker_done(&c->worker);
	free(c);
}

/* Replies that may change: the server does not know the run yet, is busy, or requires a token. */
static bool is_retriable(long status)
{
	return status == 401 || status == 403 || status == 404 || curl_may_pass(status);
}

static enum upload_result classify_reply(struct file_uploader *c, const struct queued_file *p,
					 const struct http_reply *reply, struct err *err)
{
	char why[400], text[900];

	if (reply->status / 100 == 2)
		return UPLOADED;
	http_reply_reason(reply, why, sizeof(why));
	err_set(err, ERR_PEER, "%s", why);
	if (is_retriable(reply->status))
		return RETRY_LATER;
	snprintf(text, sizeof(text), "the server refuses the file \"%.200s\": %s", p->name, why);
	worker_say(&c->worker, text);
	return REFUSED;
}

/* Maps the file and sends it as one PUT request. */
static enum upload_result upload_file(struct file_uploader *c, const struct queued_file *p, double deadline_s,
				      struct err *err)
{
	struct file_map map = { 0 };
	struct http_reply reply;
	struct buf path;
	enum upload_result how = REFUSED;

	if (file_map_open(&map, p->path, err)) {
		worker_say(&c->worker, err->text);
		return REFUSED;
	}
	buf_init(&path, PATH_BYTES_MAX);
	buf_addf(&path, "/api/v1/runs/%s/artifacts/", c->run_id);
	http_add_path(&path, p->name);
	if (buf_failed(&path)) {
		worker_say(&c->worker, "the name of a file is too long for a URL");
	} else if (http_send(c->http, &(struct http_request){ .method = "PUT", .path = path.data,
							      .body = map.bytes ? (const void *)map.bytes : "",
							      .body_bytes = map.n, .deadline_s = deadline_s },
			     &reply, err)) {
		how = RETRY_LATER;
	} else {
		how = classify_reply(c, p, &reply, err);
		http_reply_done(&reply);
	}
	buf_done(&path);
	file_map_close(&map);
	return how;
}

/* Uploads the first file of the queue. The caller holds the lock, which is released during the request. */
static void upload_first(struct file_uploader *c)
{
	struct queued_file *p = c->first;
	double deadline_s = c->worker.stop ? c->worker.deadline_s : 0;
	struct err err = ERR_INIT;
	enum upload_result how;

	pthread_mutex_unlock(&c->worker.lock);
	how = upload_file(c, p, deadline_s, &err);
	if (how == RETRY_LATER && !c->backoff_s) {
		char text[640];

		snprintf(text, sizeof(text), "%s; files stay on disk and are sent again later", err.text);
		worker_say(&c->worker, text);
	}
	pthread_mutex_lock(&c->worker.lock);
	c->first = p->next;
	c->end = c->first ? c->end : &c->first;
	if (how == RETRY_LATER) {
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

/* Waits until a file is due; returns false if the thread must end. The caller holds the lock. */
static bool wait_for_file(struct file_uploader *c)
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

	while (wait_for_file(c))
		upload_first(c);
}

int file_uploader_start(struct file_uploader **ret, const struct file_uploader_opts *opts, struct err *err)
{
	struct file_uploader *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return err_nomem(err, NULL);
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
	struct queued_file *p = malloc(sizeof(*p) + path_n + name_n);

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
	for (const struct queued_file *p = c->first; p; p = p->next)
		lacking++;
	worker_leave(&c->worker);
	return lacking;
}
