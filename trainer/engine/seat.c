/* seat.c: stop requests and last words of a rank. */
#include "trainer/engine/seat.h"

#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

int seat_stop(const struct seat *s)
{
	struct signalfd_siginfo info;
	sigset_t set;

	if (s->signal_fd >= 0 && read(s->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		atomic_store(&s->board->stop_signal, (int)info.ssi_signo);
		sigemptyset(&set);
		sigaddset(&set, SIGINT);
		sigaddset(&set, SIGTERM);
		sigaddset(&set, SIGUSR1);
		sigprocmask(SIG_UNBLOCK, &set, NULL);
	}
	return atomic_load(&s->board->stop_signal);
}

int seat_exit_code(const struct err *e)
{
	return e->code == ERR_USAGE ? 2 : 1;
}

int seat_fail(const struct seat *s, const struct err *e)
{
	struct board_rank *b = &s->board->rank[s->launched ? s->rank : 0];

	b->err = *e;
	atomic_store(&b->said, 1);
	return seat_exit_code(e);
}
