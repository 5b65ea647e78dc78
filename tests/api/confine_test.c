/* SPDX-License-Identifier: Apache-2.0 */
/* confine_test.c: what a sandboxed thread, and a thread started by it, can still open; other threads are unrestricted.
 * */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "web/server/sandbox.h"

struct place {
	char top[64], inside[128], outside[128], readable[128], seen[128];
	bool confined, child;
	int inside_errno, made_errno, renamed_errno, outside_errno, made_beside_errno, read_errno, written_errno,
		passwd_errno, exec_errno, connect_errno, seen_errno, seen_file_errno;
};

static int try_open(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600), saved = fd < 0 ? errno : 0;

	if (fd >= 0)
		close(fd);
	return saved;
}

static int try_connect(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(1),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int saved = connect(fd, (struct sockaddr *)&to, sizeof(to)) ? errno : 0;

	close(fd);
	return saved;
}

static void look(struct place *p)
{
	char path[256], other[256], *const argv[] = { (char *)(uintptr_t)"true", NULL };

	p->inside_errno = try_open(p->inside, O_RDONLY);
	snprintf(path, sizeof(path), "%s/made%d", p->inside, p->child);
	p->made_errno = try_open(path, O_RDWR | O_CREAT | O_EXCL);
	snprintf(other, sizeof(other), "%s/folder", p->inside);
	mkdir(other, 0700);
	snprintf(other, sizeof(other), "%s/folder/made%d", p->inside, p->child);
	p->renamed_errno = rename(path, other) ? errno : 0;
	p->outside_errno = try_open(p->outside, O_RDONLY);
	snprintf(path, sizeof(path), "%s/../made", p->inside);
	p->made_beside_errno = try_open(path, O_RDWR | O_CREAT);
	p->read_errno = try_open(p->readable, O_RDONLY);
	p->written_errno = try_open(p->readable, O_WRONLY);
	p->seen_errno = try_open(p->seen, O_RDONLY | O_DIRECTORY);
	snprintf(path, sizeof(path), "%s/file", p->seen);
	p->seen_file_errno = try_open(path, O_RDONLY);
	p->passwd_errno = try_open("/etc/passwd", O_RDONLY);
	p->connect_errno = try_connect();
	p->exec_errno = 0;
	if (p->confined) {
		execv("/bin/true", argv);
		p->exec_errno = errno;
	}
}

static void *child_main(void *arg)
{
	look(arg);
	return NULL;
}

static void *confined_main(void *arg)
{
	struct place *p = arg;
	const struct sandbox_path paths[] = { { .path = p->inside, .write = true }, { .path = p->readable },
					      { .path = p->seen, .names = true },
					      { .path = "/nowhere/at/all", .write = true } };
	pthread_t child;

	p->confined = sandbox_thread(paths, sizeof(paths) / sizeof(paths[0]));
	if (!p->confined)
		return NULL;
	if (!p->child)
		look(p);
	else if (!pthread_create(&child, NULL, child_main, p))
		pthread_join(child, NULL);
	return NULL;
}

static void make(struct place *p)
{
	char path[256];

	memset(p, 0, sizeof(*p));
	snprintf(p->top, sizeof(p->top), "%s/dptrack-test.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	assert_non_null(mkdtemp(p->top));
	snprintf(p->inside, sizeof(p->inside), "%s/inside", p->top);
	snprintf(p->outside, sizeof(p->outside), "%s/beside", p->top);
	snprintf(p->readable, sizeof(p->readable), "%s/readable", p->top);
	snprintf(p->seen, sizeof(p->seen), "%s/seen", p->top);
	assert_int_equal(mkdir(p->inside, 0700), 0);
	assert_int_equal(mkdir(p->seen, 0700), 0);
	snprintf(path, sizeof(path), "%s/file", p->seen);
	assert_int_equal(try_open(path, O_RDWR | O_CREAT), 0);
	assert_int_equal(try_open(p->outside, O_RDWR | O_CREAT), 0);
	assert_int_equal(try_open(p->readable, O_RDWR | O_CREAT), 0);
}

static void clean(struct place *p)
{
	char command[200];

	snprintf(command, sizeof(command), "rm -rf '%s'", p->top);
	assert_int_equal(system(command), 0);
}

static void confined(bool child)
{
	struct place p;
	pthread_t thread;

	make(&p);
	p.child = child;
	assert_int_equal(pthread_create(&thread, NULL, confined_main, &p), 0);
	pthread_join(thread, NULL);
	if (!p.confined) {
		clean(&p);
		print_message("this kernel has no Landlock\n");
		skip();
	}
	assert_int_equal(p.inside_errno, 0);
	assert_int_equal(p.made_errno, 0);
	assert_int_equal(p.renamed_errno, 0);
	assert_int_equal(p.outside_errno, EACCES);
	assert_int_equal(p.made_beside_errno, EACCES);
	assert_int_equal(p.read_errno, 0);
	assert_int_equal(p.written_errno, EACCES);
	assert_int_equal(p.seen_errno, 0);
	assert_int_equal(p.seen_file_errno, EACCES);
	assert_int_equal(p.passwd_errno, EACCES);
	assert_int_equal(p.exec_errno, EACCES);
	assert_true(p.connect_errno == EACCES || p.connect_errno == ECONNREFUSED); /* older kernels guard files only */
	p.confined = false;
	look(&p);
	assert_int_equal(p.outside_errno, 0);
	assert_int_equal(p.passwd_errno, 0);
	clean(&p);
}

static void test_thread(void **state)
{
	(void)state;
	confined(false);
}

static void test_child_process(void **state)
{
	(void)state;
	confined(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_thread), cmocka_unit_test(test_child_process) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
