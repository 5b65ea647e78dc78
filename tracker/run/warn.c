/* SPDX-License-Identifier: Apache-2.0 */
/* warn.c: stores warnings in one slot for each kind. */
#include "tracker/run/run_inside.h"

#include <stdio.h>
#include <stdlib.h>

#include "tracker/base/clock.h"

#define REPEAT_S 60.0

struct warn_slot {
	char text[512];
	bool pending;
	bool delivered;
	double delivered_s;
};

struct warn {
	pthread_mutex_t lock;
	void (*callback)(void *user, const char *text);
	void *user;
	struct warn_slot slot[WARN_KINDS];
};

struct warn *warn_new(void (*callback)(void *user, const char *text), void *user)
{
	struct warn *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->callback = callback;
	w->user = user;
	pthread_mutex_init(&w->lock, NULL);
	return w;
}

void warn_free(struct warn *w)
{
	if (!w)
		return;
	pthread_mutex_destroy(&w->lock);
	free(w);
}

void warn_post(struct warn *w, enum warn_kind kind, const char *fmt, ...)
{
	struct warn_slot *s = &w->slot[kind];
	va_list ap;

	va_start(ap, fmt);
	pthread_mutex_lock(&w->lock);
	vsnprintf(s->text, sizeof(s->text), fmt, ap);
	s->pending = true;
	pthread_mutex_unlock(&w->lock);
	va_end(ap);
}

/* Delivers the slot's text if it is due; the callback runs outside the lock. */
static void deliver_slot(struct warn *w, struct warn_slot *s, bool all)
{
	void (*callback)(void *user, const char *text);
	char text[sizeof(s->text)];
	double now = clock_mono_s();
	bool due;

	pthread_mutex_lock(&w->lock);
	callback = w->callback;
	due = callback && s->pending && (all || !s->delivered || now - s->delivered_s >= REPEAT_S);
	if (due) {
		memcpy(text, s->text, sizeof(text));
		s->pending = false;
		s->delivered = true;
		s->delivered_s = now;
	}
	pthread_mutex_unlock(&w->lock);
	if (due)
		callback(w->user, text);
}

void warn_deliver(struct warn *w, bool all)
{
	for (int kind = 0; kind < WARN_KINDS; kind++)
		deliver_slot(w, &w->slot[kind], all);
}

void warn_mute(struct warn *w)
{
	pthread_mutex_lock(&w->lock);
	w->callback = NULL;
	pthread_mutex_unlock(&w->lock);
}
