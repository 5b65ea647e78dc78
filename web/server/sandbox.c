/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox.c: calls Landlock by its three system calls; the C library of Debian 12 has neither wrappers nor the newer
 * rights. */
#include "web/server/sandbox.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FS_TRUNCATE (UINT64_C(1) << 14)	 /* since version 3 */
#define FS_IOCTL_DEV (UINT64_C(1) << 15) /* since version 5 */
#define NET_BIND (UINT64_C(1) << 0)	 /* since version 4 */
#define NET_CONNECT (UINT64_C(1) << 1)

#define FS_READ (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define FS_WRITE_FILE (LANDLOCK_ACCESS_FS_WRITE_FILE | FS_TRUNCATE)
#define FS_WRITE_FOLDER                                                                                                \
	(LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |                \
	 LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REFER)
#define FS_ALL_1 ((UINT64_C(1) << 13) - 1) /* version 1 */

/* Layout of the kernel; older headers have only its first member. */
struct landlock_ruleset {
	uint64_t fs, net;
};

static uint64_t landlock_file_rights(long version)
{
	uint64_t rights = FS_ALL_1;

	if (version >= 2)
		rights |= LANDLOCK_ACCESS_FS_REFER;
	if (version >= 3)
		rights |= FS_TRUNCATE;
	if (version >= 5)
		rights |= FS_IOCTL_DEV;
	return rights;
}

static bool add_landlock_rule(int ruleset, const struct sandbox_path *p, uint64_t known)
{
	struct landlock_path_beneath_attr rule = { .allowed_access = FS_READ };
	struct stat st;
	bool ok = true;

	rule.parent_fd = open(p->path, O_PATH | O_CLOEXEC);
	if (rule.parent_fd < 0)
		return true;
	if (!fstat(rule.parent_fd, &st)) {
		if (p->write)
			rule.allowed_access |= FS_WRITE_FILE | FS_WRITE_FOLDER;
		if (p->names)
			rule.allowed_access = LANDLOCK_ACCESS_FS_READ_DIR;
		if (!S_ISDIR(st.st_mode))
			rule.allowed_access &= ~(FS_WRITE_FOLDER | LANDLOCK_ACCESS_FS_READ_DIR);
		rule.allowed_access &= known;
		ok = !syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
	}
	close(rule.parent_fd);
	return ok;
}

bool sandbox_thread(const struct sandbox_path *paths, size_t n)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	struct landlock_ruleset attr = { 0 };
	bool ok = true;
	int fd;
	size_t i;

	/* the first version forbids renaming between folders, which the store needs to publish a file */
	if (version < 2)
		return false;
	attr.fs = landlock_file_rights(version);
	attr.net = version >= 4 ? NET_BIND | NET_CONNECT : 0;
	fd = (int)syscall(SYS_landlock_create_ruleset, &attr, version >= 4 ? sizeof(attr) : sizeof(attr.fs), 0);
	if (fd < 0)
		return false;
	for (i = 0; i < n && ok; i++)
		ok = add_landlock_rule(fd, &paths[i], attr.fs);
	ok = ok && !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !syscall(SYS_landlock_restrict_self, fd, 0);
	close(fd);
	return ok;
}
