/* SPDX-License-Identifier: Apache-2.0 */
/* locate.c: where the store of a folder of runs, or of a team, is. */
#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "tracker/base/file.h"
#include "tracker/base/sha256.h"
#include "web/store/db/db.h"
#include "web/store/store.h"

/* Filesystems that other machines change (so they cannot be watched) or whose locks are unreliable. */
static const unsigned long network[] = { NFS_SUPER_MAGIC, SMB_SUPER_MAGIC, 0xff534d42 /* cifs */, 0xfe534d42 /* smb2 */,
	0x65735546 /* fuse */, 0x01021997 /* 9p */, 0x00c36400 /* ceph */, 0x0bd00bd0 /* lustre */,
	0x47504653 /* gpfs */, AFS_SUPER_MAGIC, CODA_SUPER_MAGIC, 0x19830326 /* beegfs */ };

static bool is_network(const char *path)
{
	struct statfs sf;
	size_t i;

	if (statfs(path, &sf))
		return false;
	for (i = 0; i < sizeof(network) / sizeof(network[0]); i++)
		if ((unsigned long)(unsigned int)sf.f_type == network[i])
			return true;
	return false;
}

/* Names the folder for the store of a read-only LOGDIR by the digest of its path. */
static int name_state_folder(char *ret, size_t room, const char *logdir, struct err *err)
{
	const char *base = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	char real[PATH_MAX], digest[65];
	int n;

	if (db_is_address(logdir))
		snprintf(real, sizeof(real), "%s", logdir);
	else if (!realpath(logdir, real))
		return err_set_errno(err, errno, "%s", logdir);
	sha256_hex(real, strlen(real), digest);
	if (base && *base == '/')
		n = snprintf(ret, room, "%s/dptrack/%.16s", base, digest);
	else if (home && *home == '/')
		n = snprintf(ret, room, "%s/.local/state/dptrack/%.16s", home, digest);
	else
		return err_set(err, ERR_USAGE,
			       "%s cannot be written and neither XDG_STATE_HOME nor HOME is set: choose a "
			       "path with --db", logdir);
	if (n < 0 || (size_t)n >= room)
		return err_set(err, ERR_USAGE, "XDG_STATE_HOME is too long");
	return 0;
}

static int make_state_folder(char *ret, size_t room, const char *logdir, struct err *err)
{
	struct err why = ERR_INIT;
	int rc = name_state_folder(ret, room, logdir, err);

	if (!rc && (rc = file_make_folders(ret, 0700, &why)))
		err_set(err, rc, "%s cannot be written and %s: choose a path with --db", logdir, why.text);
	return rc;
}

static void copy_store_folder(char *ret, size_t room, const char *file)
{
	const char *slash = strrchr(file, '/');

	snprintf(ret, room, "%.*s", slash ? (int)(slash - file) : 1, slash ? file : ".");
}

/* The artifacts of a database are next to the runs, or below the state folder, which the first file creates. */
static int locate_address(struct store_paths *ret, const char *logdir, const char *db, struct err *err)
{
	struct store_paths p = { 0 };
	char folder[PATH_MAX - 32], shown[PATH_MAX];
	struct stat sb;
	int rc = 0;

	db_shown(shown, sizeof(shown), db);
	if (logdir && stat(logdir, &sb))
		rc = file_make_folders(logdir, 0777, err);
	if (!rc && !logdir)
		rc = name_state_folder(folder, sizeof(folder), shown, err);
	if (rc)
		return rc;
	p.poll = logdir && is_network(logdir);
	snprintf(p.db, sizeof(p.db), "%s", db);
	snprintf(p.artifacts, sizeof(p.artifacts), "%s/dptrack.artifacts", logdir ? logdir : folder);
	*ret = p;
	return 0;
}

int store_locate(struct store_paths *ret, const char *logdir, const char *db, struct err *err)
{
	struct store_paths p = { 0 };
	char folder[PATH_MAX - 32];
	struct stat sb;
	int rc;

	if ((logdir && strlen(logdir) >= sizeof(folder)) || (db && strlen(db) >= sizeof(folder)))
		return err_set(err, ERR_USAGE, "the path %.100s… is too long", logdir);
	if (db_is_address(db))
		return locate_address(ret, logdir, db, err);
	if (stat(logdir, &sb) && (rc = file_make_folders(logdir, 0777, err)))
		return rc;
	if (!stat(logdir, &sb) && !S_ISDIR(sb.st_mode))
		return err_set(err, ERR_USAGE, "%s is not a folder", logdir);
	if (access(logdir, R_OK | X_OK))
		return err_set_errno(err, errno, "cannot read %s", logdir);
	p.poll = is_network(logdir);
	p.elsewhere = !db && (p.poll || access(logdir, W_OK) != 0);
	if (p.elsewhere && (rc = make_state_folder(folder, sizeof(folder), logdir, err)))
		return rc;
	if (!p.elsewhere)
		snprintf(folder, sizeof(folder), "%s", logdir);
	snprintf(p.db, sizeof(p.db), "%s%s", db ? db : folder, db ? "" : "/dptrack.db");
	if (db)
		copy_store_folder(folder, sizeof(folder), db);
	snprintf(p.artifacts, sizeof(p.artifacts), "%s/dptrack.artifacts", folder);
	*ret = p;
	return 0;
}

bool store_is_address(const char *db)
{
	return db_is_address(db);
}

void store_shown(char *ret, size_t room, const char *db)
{
	db_shown(ret, room, db);
}

int store_address_check(const char *address, bool *ret_password, struct err *err)
{
	return db_address_check(address, ret_password, err);
}

int store_address_version(const char *address, int *ret, struct err *err)
{
	return db_address_version(address, ret, err);
}

int store_address_init(const char *address, struct err *err)
{
	return db_address_init(address, err);
}

int store_address_upgrade(const char *address, int *ret_from, struct err *err)
{
	return db_address_upgrade(address, ret_from, err);
}

int store_address_wants(void)
{
	return DB_VERSION;
}
