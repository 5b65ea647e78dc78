/* SPDX-License-Identifier: Apache-2.0 */
/* warn.c: stores warnings in one slot for each kind. */
#include "tracker/run/run_inside.h"

#include <stdio.h>
#include <stdlib.h>

#include "tracker/base/clock.h"

#define OTHERS	 " (and others)"
#define REPEAT_S 60.0

struct warn_slot {
	char text[512];
	bool pending, others; /* others: the text replaced another one that was not delivered */
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
	bool of_item = kind >= WARN_KEY && kind <= WARN_FILE;
	struct warn_slot *s = &w->slot[kind];
	char text[sizeof(s->text)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	pthread_mutex_lock(&w->lock);
	s->others = s->others || (of_item && s->pending && strcmp(s->text, text) != 0);
	memcpy(s->text, text, sizeof(s->text));
	s->pending = true;
	pthread_mutex_unlock(&w->lock);
}

/* Delivers the slot's text if it is due; the callback runs outside the lock. */
static void deliver_slot(struct warn *w, struct warn_slot *s, bool all)
{
	void (*callback)(void *user, const char *text);
	char text[sizeof(s->text) + sizeof(OTHERS)];
	double now = clock_mono_s();
	bool due;

	pthread_mutex_lock(&w->lock);
	callback = w->callback;
	due = callback && s->pending && (all || !s->delivered || now - s->delivered_s >= REPEAT_S);
	if (due) {
		snprintf(text, sizeof(text), "%s%s", s->text, s->others ? OTHERS : "");
		s->pending = s->others = false;
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
