/* follow_note.c: wakes the follower's thread, and sets its status line. */
#include <stdio.h>
#include <unistd.h>

#include "web/store/follow/follow_inside.h"

void follow_wake(struct follow *f)
{
	uint64_t one = 1;

	if (write(f->wake_fd, &one, sizeof one) < 0)
		return;
}

void follow_note(struct follow *f, const char *path, const char *text)
{
	pthread_mutex_lock(&f->lock);
	snprintf(f->stats.note, sizeof f->stats.note, "%.100s: %.150s", path, text);
	pthread_mutex_unlock(&f->lock);
}
