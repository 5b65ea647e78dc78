/* SPDX-License-Identifier: Apache-2.0 */
/* peers_test.c: owners of blocks, nodes that fail, and the server of blocks against raw requests: right ones, wrong
 * proofs, garbage, clients that are slow or too many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/base/crc32c.h"
#include "tracker/base/sha256.h"
#include "trainer/comm/bootstrap.h"
#include "trainer/data/store/fetch.h"
#include "trainer/data/store/peers.h"

#define NODES 5
#define NAMES 20000
#define KEY "a secret"

static struct peers_node node_of(int i)
{
	struct peers_node n = { .port = 1, .address = "127.0.0.1" };

	n.id[0] = (unsigned char)i;
	return n;
}

static struct peers *open_nodes(const struct peers_node *node, int n, int own)
{
	return peers_open(&(struct peers_opts){ .node = node, .n = n, .id = node[own].id, .key = KEY });
}

static void name_of(int i, char ret[65])
{
	sha256_hex(&i, sizeof(i), ret);
}

/* Every node owns its share, all agree, and a node that is gone moves only its own blocks. */
static void test_owners(void **state)
{
	struct peers_node node[NODES];
	struct peers *all, *other, *fewer;
	int share[NODES] = { 0 };
	char name[65];

	(void)state;
	for (int i = 0; i < NODES; i++)
		node[i] = node_of(i);
	all = open_nodes(node, NODES, 0);
	other = open_nodes(node, NODES, 3);
	fewer = open_nodes(node, NODES - 1, 0);
	for (int i = 0; i < NAMES; i++) {
		int owner;

		name_of(i, name);
		owner = peers_owner(all, name);
		share[owner]++;
		assert_int_equal(peers_owner(other, name), owner);
		assert_int_equal(peers_pick(all, name), owner == 0 ? -1 : owner);
		assert_int_equal(peers_pick(other, name), owner == 3 ? -1 : owner);
		if (owner < NODES - 1)
			assert_int_equal(peers_owner(fewer, name), owner);
	}
	for (int i = 0; i < NODES; i++)
		assert_in_range(share[i], NAMES / NODES * 95 / 100, NAMES / NODES * 105 / 100);
	peers_close(all);
	peers_close(other);
	peers_close(fewer);
}

/* Nodes with one folder have one id: none of them asks another. */
static void test_one_folder(void **state)
{
	struct peers_node node[2] = { node_of(7), node_of(7) };
	struct peers *p = open_nodes(node, 2, 1);
	char name[65];

	(void)state;
	for (int i = 0; i < 100; i++) {
		name_of(i, name);
		assert_int_equal(peers_pick(p, name), -1);
	}
	peers_close(p);
}

static void test_failures(void **state)
{
	struct peers_node node[2] = { node_of(0), node_of(1) };
	struct peers *p = open_nodes(node, 2, 0);
	char name[65], line[400];
	int i = 0;

	(void)state;
	do
		name_of(i++, name);
	while (peers_owner(p, name) != 1);
	assert_int_equal(peers_pick(p, name), 1);
	assert_false(peers_notice(p, line, sizeof(line)));
	for (int k = 0; k < 20; k++)
		peers_failed(p, 1, "Connection refused");
	assert_int_equal(peers_pick(p, name), -1);
	assert_true(peers_notice(p, line, sizeof(line)));
	assert_string_equal(line, "--cache-shared: node 1 (127.0.0.1 port 1): Connection refused: its blocks are "
				  "fetched from the store");
	assert_false(peers_notice(p, line, sizeof(line)));
	peers_close(p);
}

/* ---- the server ---- */

struct served {
	struct peers *peers;
	struct peer_server *server;
	int port;
};

/* Object 0: blocks of any size, whose bytes are their offset; object 1: on its way; others: unknown. */
static int read_source(void *user, const struct peers_ask *ask, void *to)
{
	(void)user;
	if (ask->object > 1)
		return ERR_NOENT;
	if (ask->object == 1)
		return 0;
	memset(to, (int)(ask->begin & 0xff), (size_t)ask->bytes);
	return 1;
}

static int open_server(void **state)
{
	static struct served s;
	struct peers_node node = node_of(0);
	struct err err = ERR_INIT;
	int listener;

	if (tcp_listen("127.0.0.1", 0, &listener, &err))
		return -1;
	s.port = tcp_port(listener);
	s.peers = open_nodes(&node, 1, 0);
	assert_int_equal(peer_server_open(&s.server, s.peers, listener, &err), 0);
	peers_attach(s.peers, read_source, NULL);
	*state = &s;
	return 0;
}

static int close_server(void **state)
{
	struct served *s = *state;

	peers_detach(s->peers);
	peer_server_close(s->server);
	peers_close(s->peers);
	return 0;
}

static void connect_to(const struct served *s, int fd)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)s->port) };

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(fd, (const struct sockaddr *)&a, sizeof(a)), 0);
}

static int new_socket(void)
{
	const struct timeval limit = { .tv_sec = 20 };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return fd;
}

static int dial(const struct served *s)
{
	int fd = new_socket();

	connect_to(s, fd);
	return fd;
}

/* The text of a request with its proof by another implementation of the rule. */
static void make_request(const char *key, const struct peers_ask *ask, char ret[1024])
{
	unsigned char mac[32];
	char text[300], hex[65] = "";
	int n = snprintf(text, sizeof(text), "dptrain asks %s %s %d %llu %llu", ask->nonce, ask->name, ask->object,
			 (unsigned long long)ask->begin, (unsigned long long)ask->bytes);

	sha256_hmac(key, text, (size_t)n, mac);
	for (int i = 0; i < 32; i++)
		snprintf(hex + 2 * i, 3, "%02x", mac[i]);
	snprintf(ret, 1024,
		 "GET /block/%s?object=%d&begin=%llu&bytes=%llu HTTP/1.1\r\nHost: a\r\nAuthorization: DPTrain %s "
		 "%s\r\n\r\n",
		 ask->name, ask->object, (unsigned long long)ask->begin, (unsigned long long)ask->bytes, ask->nonce,
		 hex);
}

static struct peers_ask ask_of(int object, uint64_t begin, uint64_t bytes)
{
	struct peers_ask ask = { .object = object, .begin = begin, .bytes = bytes };

	name_of((int)begin, ask.name);
	memset(ask.nonce, 'a', sizeof(ask.nonce) - 1);
	return ask;
}

/* Reads the head of a response, and nothing after it. Returns the status; 0: the server closed the connection. */
static int read_head(int fd, char ret[1024])
{
	size_t n = 0;
	int status = 0;

	ret[0] = '\0';
	while (n < 1023 && !(n >= 4 && !memcmp(ret + n - 4, "\r\n\r\n", 4)) && recv(fd, ret + n, 1, 0) == 1)
		ret[++n] = '\0';
	return sscanf(ret, "HTTP/1.1 %d ", &status) == 1 ? status : 0;
}

static size_t read_body(int fd, char *to, size_t n)
{
	size_t have = 0;
	ssize_t got;

	while (have < n && (got = recv(fd, to + have, n - have, 0)) > 0)
		have += (size_t)got;
	return have;
}

static void send_text(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Requests a block on the connection and checks it. */
static void expect_block(const struct served *s, int fd, uint64_t begin, size_t n)
{
	struct peers_ask ask = ask_of(0, begin, n);
	char head[1024], text[1024], proof[PEERS_PROOF_BYTES], want[PEERS_PROOF_BYTES], *bytes = malloc(n);
	const char *given;
	unsigned crc;

	make_request(KEY, &ask, text);
	send_text(fd, text);
	assert_int_equal(read_head(fd, head), 200);
	assert_int_equal(read_body(fd, bytes, n), n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal((unsigned char)bytes[i], begin & 0xff);
	given = strstr(head, "DPTrain-Block: ");
	assert_non_null(given);
	assert_int_equal(sscanf(given, "DPTrain-Block: %8x %64[0-9a-f]", &crc, proof), 2);
	assert_int_equal(crc, crc32c(0, bytes, n));
	peers_prove_block(s->peers, &ask, crc, want);
	assert_true(peers_proof_equal(proof, want));
	free(bytes);
}

/* Several blocks on one connection; a client that sends two requests at once; one in pieces. */
static void test_blocks(void **state)
{
	const struct served *s = *state;
	struct peers_ask late = ask_of(1, 0, 100), more = ask_of(0, 5, 10);
	char text[1024], head[1024], both[2048];
	int fd = dial(s);

	expect_block(s, fd, 0, 1);
	expect_block(s, fd, 77, FETCH_BLOCK);
	expect_block(s, fd, 78, 12345);
	make_request(KEY, &late, text);
	send_text(fd, text);
	assert_int_equal(read_head(fd, head), 202);
	make_request(KEY, &more, head);
	snprintf(both, sizeof(both), "%s%s", text, head);
	send_text(fd, both);
	assert_int_equal(read_head(fd, head), 202);
	assert_int_equal(read_head(fd, head), 200);
	assert_int_equal(read_body(fd, both, 10), 10);
	for (const char *c = text; *c; c++)
		assert_int_equal(send(fd, c, 1, MSG_NOSIGNAL), 1);
	assert_int_equal(read_head(fd, head), 202);
	close(fd);
}

/* Each ends in one line; then the server still answers. */
static void test_bad_requests(void **state)
{
	const struct served *s = *state;
	char long_text[PEER_SERVER_HEAD_BYTES + 1], good[1024], foreign[1024], unknown[1024], large[1024];
	struct peers_ask ask = ask_of(0, 0, 10), other = ask_of(2, 0, 10), big = ask_of(0, 0, FETCH_BLOCK + 1);
	const struct {
		const char *text;
		int status;
		const char *line;
	} rows[] = {
		{ "\r\n\r\n", 400, "not a request for a block\n" },
		{ "GET / HTTP/1.1\r\n\r\n", 400, "not a request for a block\n" },
		{ "POST /block/0 HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", 400, "not a request for a block\n" },
		{ "GET /block/../../etc/passwd?object=0&begin=0&bytes=1 HTTP/1.1\r\n\r\n", 400,
		  "not a request for a block\n" },
		{ "\x16\x03\x01\x02\xff\xfe\r\n\r\n", 400, "not a request for a block\n" }, /* TLS */
		{ long_text, 400, "a request that is too long\n" },
		{ foreign, 403, "another job key (DPTRAIN_JOB_KEY)\n" },
		{ unknown, 404, "not a block of this node's set\n" },
		{ large, 404, "not a block of this node's set\n" },
		{ NULL, 400, "not a request for a block\n" }, /* the good one with another length */
	};

	memset(long_text, 'x', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	make_request(KEY, &ask, good);
	make_request("another secret", &ask, foreign);
	make_request(KEY, &other, unknown);
	make_request(KEY, &big, large);
	memcpy(strstr(good, "bytes="), "bytes=-1", 8);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char head[1024], body[200] = "";
		int fd = dial(s);

		print_message("%.40s\n", rows[i].text ? rows[i].text : good);
		send_text(fd, rows[i].text ? rows[i].text : good);
		assert_int_equal(read_head(fd, head), rows[i].status);
		assert_int_equal(read_body(fd, body, sizeof(body) - 1), strlen(rows[i].line));
		assert_string_equal(body, rows[i].line);
		close(fd);
	}
	{
		char line[400];
		int fd = dial(s), n = 0;

		expect_block(s, fd, 9, 100);
		close(fd);
		while (peers_notice(s->peers, line, sizeof(line)))
			n += strstr(line, "--cache-shared: refused a request of 127.0.0.1: ") != NULL;
		assert_int_equal(n, 4); /* each reason once */
	}
}

/* Clients that do not read occupy the blocks' memory: other clients get the status 503, and the slow ones are closed. A
 * request that never ends is closed, too. */
static void test_slow_clients(void **state)
{
	const struct served *s = *state;
	struct peers_ask ask = ask_of(0, 3, FETCH_BLOCK);
	char text[1024], head[1024], *rest = malloc(FETCH_BLOCK);
	int slow[PEER_SERVER_BLOCKS], half = dial(s), fd = dial(s), status = 0;
	double until = clock_mono_s() + 25, last;

	make_request(KEY, &ask, text);
	send_text(half, "GET /blo");
	for (int i = 0; i < PEER_SERVER_BLOCKS; i++) {
		slow[i] = dial(s);
		send_text(slow[i], text);
		assert_int_equal(read_head(slow[i], head), 200);
	}
	last = clock_mono_s();
	send_text(fd, text);
	assert_int_equal(read_head(fd, head), 503);
	while (status != 200 && clock_mono_s() < until) {
		clock_sleep_s(0.2);
		send_text(fd, text);
		status = read_head(fd, head);
	}
	assert_int_equal(status, 200);
	assert_int_equal(read_body(fd, rest, FETCH_BLOCK), FETCH_BLOCK);
	while (clock_mono_s() < last + PEER_SERVER_IDLE_S + 2)
		clock_sleep_s(0.1);
	for (int i = 0; i < PEER_SERVER_BLOCKS; i++) {
		assert_true(read_body(slow[i], rest, FETCH_BLOCK) < FETCH_BLOCK);
		close(slow[i]);
	}
	assert_int_equal(read_head(half, head), 0);
	close(half);
	close(fd);
	free(rest);
}

/* More connections than there is room for: the idle ones give way. */
static void test_many_connections(void **state)
{
	const struct served *s = *state;
	int fd[PEER_SERVER_CONNECTIONS + 50];

	for (int i = 0; i < PEER_SERVER_CONNECTIONS + 50; i++)
		fd[i] = dial(s);
	expect_block(s, fd[PEER_SERVER_CONNECTIONS + 49], 4, 1000);
	for (int i = 0; i < PEER_SERVER_CONNECTIONS + 50; i++)
		close(fd[i]);
}

/* Lowers the limit so that no descriptor is free. */
static void allow_no_more_files(struct rlimit *ret_before)
{
	const int next = dup(0);
	struct rlimit few;

	assert_true(next > 0);
	close(next);
	getrlimit(RLIMIT_NOFILE, ret_before);
	few = *ret_before;
	few.rlim_cur = (rlim_t)next;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
}

/* Uses the descriptor that the server is about to free. */
static int use_last_descriptor(void)
{
	const double until_s = clock_mono_s() + 20;
	int fd;

	while ((fd = dup(0)) < 0 && clock_mono_s() < until_s)
		clock_sleep_s(0.01);
	assert_true(fd >= 0);
	return fd;
}

static double process_cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* If no descriptor is free, the server closes an idle connection. If none is idle, clients wait, and the server does
 * not spin. */
static void test_no_descriptors(void **state)
{
	const struct served *s = *state;
	int idle = dial(s), next = new_socket(), last = new_socket(), taken;
	struct rlimit before;
	double cpu_s;
	char byte;

	expect_block(s, idle, 1, 10);
	allow_no_more_files(&before);
	connect_to(s, next);
	expect_block(s, next, 2, 1000);
	assert_int_equal(recv(idle, &byte, 1, 0), 0);
	shutdown(next, SHUT_RDWR);
	taken = use_last_descriptor();
	connect_to(s, last);
	cpu_s = process_cpu_s();
	clock_sleep_s(0.5);
	assert_true(process_cpu_s() - cpu_s < 0.1);
	close(taken);
	expect_block(s, last, 3, 1000);
	setrlimit(RLIMIT_NOFILE, &before);
	close(idle);
	close(next);
	close(last);
}

/* Without a set, a request is answered like one for a block on its way. */
static void test_detached(void **state)
{
	const struct served *s = *state;
	struct peers_ask ask = ask_of(0, 3, 10);
	char text[1024], head[1024];
	int fd = dial(s);

	peers_detach(s->peers);
	make_request(KEY, &ask, text);
	send_text(fd, text);
	assert_int_equal(read_head(fd, head), 202);
	peers_attach(s->peers, read_source, NULL);
	expect_block(s, fd, 1, 10);
	close(fd);
}

int main(void)
{
	struct rlimit files;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_owners),
		cmocka_unit_test(test_one_folder),
		cmocka_unit_test(test_failures),
		cmocka_unit_test_setup_teardown(test_blocks, open_server, close_server),
		cmocka_unit_test_setup_teardown(test_bad_requests, open_server, close_server),
		cmocka_unit_test_setup_teardown(test_slow_clients, open_server, close_server),
		cmocka_unit_test_setup_teardown(test_many_connections, open_server, close_server),
		cmocka_unit_test_setup_teardown(test_no_descriptors, open_server, close_server),
		cmocka_unit_test_setup_teardown(test_detached, open_server, close_server),
	};

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max < 4096 ? files.rlim_max : 4096;
	setrlimit(RLIMIT_NOFILE, &files);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
