/* SPDX-License-Identifier: Apache-2.0 */
/* listen.c: binds the address and reads the certificate. Independent of HTTP. */
#include "tracker/mem/mem.h"
#include "web/server/exchange.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LISTEN_PEM_MAX = 1 << 20 };

static bool is_loopback_address(const struct sockaddr *a)
{
	if (a->sa_family == AF_INET)
		return (ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24) == 127;
	return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

static bool is_wildcard_address(const struct sockaddr *a)
{
	if (a->sa_family == AF_INET)
		return !((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr;
	return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

/* Opens, binds and listens; explains the common errors of bind. */
static int open_listen_socket(int *ret, const struct addrinfo *ai, const struct server_opts *o, struct err *err)
{
	int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1, saved;

	if (fd < 0)
		return err_set_errno(err, errno, "cannot open a socket for %s", o->host);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!bind(fd, ai->ai_addr, ai->ai_addrlen) && !listen(fd, SOMAXCONN)) {
		*ret = fd;
		return 0;
	}
	saved = errno;
	close(fd);
	if (saved == EADDRINUSE)
		return err_set(err, ERR_BUSY, "port %d of %s is in use by another program: choose one with --port "
			       "(0: any free one)", o->port, o->host);
	if (saved == EACCES)
		return err_set(err, ERR_USAGE, "port %d of %s needs more privileges: choose one above 1023 with --port",
			       o->port, o->host);
	if (saved == EADDRNOTAVAIL)
		return err_set(err, ERR_USAGE, "--host %s: not an address of this machine", o->host);
	return err_set_errno(err, saved, "cannot listen on %s port %d", o->host, o->port);
}

static int format_bound_address(struct listen *l, const struct server_opts *o, struct err *err)
{
	struct sockaddr_storage bound;
	socklen_t len = sizeof(bound);
	int port;

	if (getsockname(l->fd, (struct sockaddr *)&bound, &len))
		return err_set_errno(err, errno, "cannot read the address that was bound");
	port = bound.ss_family == AF_INET ? ntohs(((struct sockaddr_in *)(void *)&bound)->sin_port)
					  : ntohs(((struct sockaddr_in6 *)(void *)&bound)->sin6_port);
	snprintf(l->address, sizeof(l->address), strchr(o->host, ':') ? "%s://[%s]:%d" : "%s://%s:%d",
		 l->cert ? "https" : "http", o->host, port);
	return 0;
}

static int read_pem_file(char **ret, const char *path, const char *flag, struct err *err)
{
	FILE *f = fopen(path, "re");
	char *text;
	size_t n;

	if (!f)
		return err_set(err, ERR_USAGE, "%s %s: %s", flag, path, strerror(errno));
	text = mem_alloc(LISTEN_PEM_MAX);
	n = fread(text, 1, LISTEN_PEM_MAX - 1, f);
	fclose(f);
	text[n] = '\0';
	if (n == LISTEN_PEM_MAX - 1 || !strstr(text, "-----BEGIN ")) {
		free(text);
		return err_set(err, ERR_USAGE, "%s %s: expected a file in PEM format (-----BEGIN …)", flag, path);
	}
	*ret = text;
	return 0;
}

static int read_tls_files(struct listen *l, const struct server_opts *o, struct err *err)
{
	int rc;

	if (!o->tls_cert && !o->tls_key)
		return 0;
	if (!o->tls_cert || !o->tls_key)
		return err_set(err, ERR_USAGE, "--tls-cert and --tls-key belong together: give both");
	rc = read_pem_file(&l->cert, o->tls_cert, "--tls-cert", err);
	return rc ? rc : read_pem_file(&l->key, o->tls_key, "--tls-key", err);
}

static int listen_if_allowed(struct listen *l, const struct addrinfo *ai, const struct server_opts *o, struct err *err)
{
	int rc;

	l->public = !is_loopback_address(ai->ai_addr);
	l->wildcard = is_wildcard_address(ai->ai_addr);
	if (l->public && !o->has_token)
		return err_set(err, ERR_USAGE,
			       "%s can be reached from other machines: create a token first (dptrack token add NAME "
			       "--scope admin), or set one in DPTRACK_TOKEN or a file named by --token-file",
			       o->host);
	rc = open_listen_socket(&l->fd, ai, o, err);
	return rc ? rc : format_bound_address(l, o, err);
}

int listen_open(struct listen *ret, const struct server_opts *o, struct err *err)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV }, *found = NULL;
	struct listen l = { .fd = -1 };
	char port[16];
	int rc;

	snprintf(port, sizeof(port), "%d", o->port);
	rc = getaddrinfo(o->host, port, &hints, &found);
	if (rc)
		rc = err_set(err, ERR_USAGE, "--host %s: %s", o->host, gai_strerror(rc));
	else if (o->behind_proxy && !o->has_token)
		rc = err_set(
			err, ERR_USAGE,
			"--behind-proxy: everybody who can reach the proxy can read the runs: create a token first "
			"(dptrack token add NAME --scope admin)");
	else
		rc = read_tls_files(&l, o, err);
	if (!rc)
		rc = listen_if_allowed(&l, found, o, err);
	if (found)
		freeaddrinfo(found);
	if (rc)
		listen_close(&l);
	else
		*ret = l;
	return rc;
}

static void forget_pem_texts(struct listen *l)
{
	if (l->key)
		explicit_bzero(l->key, strlen(l->key));
	free(l->cert);
	free(l->key);
	l->cert = l->key = NULL;
}

int listen_read_certificate(const struct server_opts *o, struct err *err)
{
	struct listen fresh = { .fd = -1 };
	int rc = read_tls_files(&fresh, o, err);

	if (!rc && fresh.cert)
		rc = tls_use(fresh.cert, fresh.key, err);
	forget_pem_texts(&fresh);
	return rc;
}

void listen_close(struct listen *l)
{
	if (l->fd >= 0)
		close(l->fd);
	forget_pem_texts(l);
	*l = (struct listen){ .fd = -1 };
}
