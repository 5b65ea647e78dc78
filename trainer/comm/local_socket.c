/* SPDX-License-Identifier: Apache-2.0 */
/* local_socket.c: abstract Unix sockets (unix(7)), which leave no file, between the processes of a user; they also pass
 * file descriptors. */
#include "trainer/comm/bootstrap.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 1024
#define TAKE_WAIT_MS 30000 /* they are on the way */

union control {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(LOCAL_SOCKET_FDS_MAX * sizeof(int))];
};

static socklen_t job_socket_address(const char *job, struct sockaddr_un *ret)
{
	size_t n;

	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	n = (size_t)snprintf(ret->sun_path + 1, sizeof(ret->sun_path) - 1, "dptrain-%s", job);
	n = n < sizeof(ret->sun_path) - 1 ? n : sizeof(ret->sun_path) - 2;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
}

int local_socket_listen(const char *job, int *ret_fd, struct err *err)
{
	struct sockaddr_un a;
	socklen_t n = job_socket_address(job, &a);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), reason;

	if (fd >= 0 && !bind(fd, (const struct sockaddr *)&a, n) && !listen(fd, BACKLOG)) {
		*ret_fd = fd;
		return 0;
	}
	reason = errno;
	if (fd >= 0)
		close(fd);
	return reason == EADDRINUSE ? err_set(err, ERR_EXISTS, "the socket of job %.100s is used", job)
				    : err_set_errno(err, reason, "cannot listen at a local socket");
}

int local_socket_connect(const char *job, int *ret_fd, struct err *err)
{
	struct sockaddr_un a;
	socklen_t n = job_socket_address(job, &a);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return err_set_errno(err, errno, "cannot create a socket");
	if (!connect(fd, (const struct sockaddr *)&a, n) && local_socket_is_own(fd)) {
		*ret_fd = fd;
		return 0;
	}
	close(fd);
	return err_set(err, ERR_PEER, "no process of the job listens");
}

/* Any user can use the name of an abstract socket. */
bool local_socket_is_own(int fd)
{
	struct ucred c;
	socklen_t n = sizeof(c);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n) && c.uid == geteuid();
}

int local_socket_pass(int to, const int *fd, int n)
{
	union control c = { .head = { CMSG_LEN((size_t)n * sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	char byte = 0;
	struct iovec v = { &byte, 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = &c,
			    .msg_controllen = CMSG_SPACE((size_t)n * sizeof(int)) };

	memcpy(CMSG_DATA(&c.head), fd, (size_t)n * sizeof(int));
	return sendmsg(to, &m, MSG_NOSIGNAL) == 1 ? 0 : ERR_PEER;
}

int local_socket_take(int from, int *fd, int n, struct err *err)
{
	union control c;
	char byte;
	struct iovec v = { &byte, 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c) };
	struct pollfd p = { .fd = from, .events = POLLIN };

	if (poll(&p, 1, TAKE_WAIT_MS) <= 0 || recvmsg(from, &m, MSG_CMSG_CLOEXEC) != 1)
		return err_set(err, ERR_PEER, "the other end closed the connection");
	if (m.msg_flags & MSG_CTRUNC || m.msg_controllen < CMSG_SPACE((size_t)n * sizeof(int)))
		return err_set(err, ERR_IO, "cannot receive shared memory: too many open files");
	memcpy(fd, CMSG_DATA(&c.head), (size_t)n * sizeof(int));
	return 0;
}
