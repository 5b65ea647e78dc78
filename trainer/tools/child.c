/* child.c: see child.h. */
#include "trainer/tools/child.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tracker/base/log.h"

/* Never returns. */
static void become(char *const *argv, int out)
{
	if (dup2(out, STDOUT_FILENO) >= 0)
		execv("/proc/self/exe", argv);
	log_error("cannot start dptrain anew: %s", strerror(errno));
	_exit(1);
}

static int read_all(int fd, struct buf *out, struct err *err)
{
	char piece[65536];
	ssize_t n;

	while ((n = read(fd, piece, sizeof(piece))) > 0 || (n < 0 && errno == EINTR))
		if (n > 0)
			buf_add(out, piece, (size_t)n);
	if (n < 0)
		return err_set_errno(err, errno, "cannot read what dptrain prints");
	return buf_failed(out) ? err_set(err, ERR_LIMIT, "dptrain printed too much") : 0;
}

int child_run(char *const *argv, struct buf *out, int *ret_code, struct err *err)
{
	int ends[2], status = 0, rc;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return err_set_errno(err, errno, "cannot make a pipe");
	pid = fork();
	if (pid == 0)
		become(argv, ends[1]);
	close(ends[1]);
	rc = pid < 0 ? err_set_errno(err, errno, "cannot start dptrain anew") : read_all(ends[0], out, err);
	close(ends[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	*ret_code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
	return rc;
}
