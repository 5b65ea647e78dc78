/* SPDX-License-Identifier: Apache-2.0 */
/* tcp.c: sockets with deadlines. */
#include "trainer/comm/bootstrap.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tracker/base/clock.h"

#define BACKLOG 1024

static int resolve_host(const char *host, int port, struct addrinfo **ret, struct err *err)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	char service[16];
	int rc;

	snprintf(service, sizeof(service), "%d", port);
	rc = getaddrinfo(host, service, &hints, ret);
	if (rc)
		return err_set(err, ERR_USAGE, "%.200s is neither an address nor the name of a machine: %s", host,
			       gai_strerror(rc));
	return 0;
}

/* Explains the errno of a failed listen. */
static int cannot_listen(const char *host, int port, int reason, struct err *err)
{
	if (reason == EADDRNOTAVAIL)
		return err_set(err, ERR_NOENT, "%.200s is not an address of this machine", host);
	if (reason == EADDRINUSE)
		return err_set(err, ERR_EXISTS, "port %d of %.200s is used by another program", port, host);
	return err_set_errno(err, reason, "cannot listen at %.200s port %d", host, port);
}

int tcp_listen(const char *host, int port, int *ret_fd, struct err *err)
{
	const int yes = 1;
	struct addrinfo *all;
	int rc = resolve_host(host, port, &all, err), reason = 0, fd = -1;

	if (rc)
		return rc;
	for (const struct addrinfo *a = all; a && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd < 0) {
			reason = errno;
			continue;
		}
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
		if (bind(fd, a->ai_addr, a->ai_addrlen) || listen(fd, BACKLOG)) {
			reason = errno;
			close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(all);
	if (fd < 0)
		return cannot_listen(host, port, reason, err);
	*ret_fd = fd;
	return 0;
}

int tcp_port(int fd)
{
	struct sockaddr_storage a;
	socklen_t n = sizeof(a);
	char service[16];

	if (getsockname(fd, (struct sockaddr *)&a, &n) ||
	    getnameinfo((const struct sockaddr *)&a, n, NULL, 0, service, sizeof(service), NI_NUMERICSERV))
		return 0;
	return (int)strtol(service, NULL, 10);
}

static void set_socket_options(int fd)
{
	const int yes = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
}

/* Returns 1: ready, 0: until_s has passed. */
static int wait_for_events(int fd, short events, double until_s)
{
	for (;;) {
		struct pollfd p = { .fd = fd, .events = events };
		double left_s = until_s - clock_mono_s();

		if (left_s <= 0)
			return 0;
		if (poll(&p, 1, (int)(left_s * 1000) + 1) > 0)
			return 1;
	}
}

/* Returns 0 or errno. */
static int connect_address(const struct addrinfo *a, double until_s, int *ret_fd)
{
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), reason = 0;
	socklen_t n = sizeof(reason);

	if (fd < 0)
		return errno;
	if (connect(fd, a->ai_addr, a->ai_addrlen) && errno != EINPROGRESS)
		reason = errno;
	else if (!wait_for_events(fd, POLLOUT, until_s))
		reason = ETIMEDOUT;
	else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &reason, &n))
		reason = errno;
	if (reason) {
		close(fd);
		return reason;
	}
	set_socket_options(fd);
	*ret_fd = fd;
	return 0;
}

int tcp_connect(const char *host, int port, double until_s, int *ret_fd, struct err *err)
{
	struct addrinfo *all;
	int rc = resolve_host(host, port, &all, err), reason = EADDRNOTAVAIL;

	if (rc)
		return rc;
	for (const struct addrinfo *a = all; a && reason; a = a->ai_next)
		reason = connect_address(a, until_s, ret_fd);
	freeaddrinfo(all);
	if (!reason)
		return 0;
	return err_set(err, ERR_PEER, "no answer at %.200s port %d: %s", host, port, strerror(reason));
}

int tcp_accept(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0)
		set_socket_options(fd);
	return fd;
}

static int fail_broken_connection(ssize_t got, struct err *err)
{
	if (got == 0)
		return err_set(err, ERR_PEER, "the other end closed the connection");
	return err_set(err, ERR_PEER, "the connection broke: %s", strerror(errno));
}

static bool should_retry_io(ssize_t got)
{
	return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

int tcp_send(int fd, const void *bytes, size_t n, double until_s, struct err *err)
{
	const char *at = bytes;

	while (n > 0) {
		ssize_t got = send(fd, at, n, MSG_NOSIGNAL);

		if (got <= 0 && !should_retry_io(got))
			return fail_broken_connection(got, err);
		if (got > 0) {
			at += got;
			n -= (size_t)got;
		} else if (!wait_for_events(fd, POLLOUT, until_s)) {
			return err_set(err, ERR_PEER, "the other end does not read");
		}
	}
	return 0;
}

int tcp_recv(int fd, void *bytes, size_t n, double until_s, struct err *err)
{
	char *at = bytes;

	while (n > 0) {
		ssize_t got = recv(fd, at, n, 0);

		if (got <= 0 && !should_retry_io(got))
			return fail_broken_connection(got, err);
		if (got > 0) {
			at += got;
			n -= (size_t)got;
		} else if (!wait_for_events(fd, POLLIN, until_s)) {
			return err_set(err, ERR_PEER, "the other end sends nothing");
		}
	}
	return 0;
}

int tcp_recv_part(int fd, void *bytes, size_t n, size_t *have)
{
	const ssize_t got = recv(fd, (char *)bytes + *have, n - *have, 0);

	if (got <= 0)
		return should_retry_io(got) ? 0 : ERR_PEER;
	*have += (size_t)got;
	return *have == n;
}

static void numeric_host_name(const struct sockaddr *a, socklen_t n, char ret[TCP_NAME_BYTES])
{
	if (getnameinfo(a, n, ret, TCP_NAME_BYTES, NULL, 0, NI_NUMERICHOST))
		ret[0] = '\0';
}

void tcp_own_name(int fd, char ret[TCP_NAME_BYTES])
{
	struct sockaddr_storage a;
	socklen_t n = sizeof(a);

	ret[0] = '\0';
	if (!getsockname(fd, (struct sockaddr *)&a, &n))
		numeric_host_name((const struct sockaddr *)&a, n, ret);
}

void tcp_peer_name(int fd, char ret[TCP_NAME_BYTES])
{
	struct sockaddr_storage a;
	socklen_t n = sizeof(a);

	ret[0] = '\0';
	if (!getpeername(fd, (struct sockaddr *)&a, &n))
		numeric_host_name((const struct sockaddr *)&a, n, ret);
}

void tcp_interface(const char *address, char *ret, size_t n)
{
	struct ifaddrs *all;

	ret[0] = '\0';
	if (getifaddrs(&all))
		return;
	for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
		int family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;
		char name[TCP_NAME_BYTES];

		if (family != AF_INET && family != AF_INET6)
			continue;
		numeric_host_name(i->ifa_addr,
				  family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6), name);
		if (!strcmp(name, address)) {
			snprintf(ret, n, "%s", i->ifa_name);
			break;
		}
	}
	freeifaddrs(all);
}
