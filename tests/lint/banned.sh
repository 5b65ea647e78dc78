#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Functions that can overflow, hide errors or keep hidden state.
cd "${srcdir:-.}" || exit 1
words='strcpy|strcat|sprintf|vsprintf|gets|strtok|atoi|atol|atof|strncpy|strncat|tmpnam|mktemp|alloca'
if find tracker trainer web tests -name node_modules -prune -o \( -name '*.c' -o -name '*.h' -o -name '*.cu' \) -print |
	xargs grep -nE "(^|[^A-Za-z_0-9>.])($words)[[:space:]]*\("; then
	echo "banned: use snprintf, buf, strtol with its end checked, memcpy with a known size"
	exit 1
fi
# SQL belongs in schema/sql, never in C.
if find tracker trainer web -name '*.c' | xargs grep -nE '"[[:space:]]*(SELECT|INSERT INTO|UPDATE|DELETE FROM|CREATE TABLE)[[:space:]]'; then
	echo "banned: SQL belongs to schema/sql/queries.sql"
	exit 1
fi
# Only one room calls SQLite; a second database engine would have the same interface.
if grep -rnE '(^|[^A-Za-z_0-9])sqlite3_' tracker trainer web --include='*.c' --include='*.h' | grep -v '^web/store/db/'; then
	echo "banned: sqlite3_ belongs to web/store/db: use what db.h offers"
	exit 1
fi
# It aborts the process when it and a worker of libmicrohttpd (0.9.75, epoll) remove the listening socket at once.
if find web tests -name node_modules -prune -o -name '*.c' -print | xargs grep -n 'MHD_quiesce_daemon('; then
	echo "banned: MHD_quiesce_daemon: refuse connections in the accept policy"
	exit 1
fi
# nvcc writes the path of the source into the names of an unnamed namespace, so that two builds differ.
if find trainer -name '*.cu' | xargs grep -nE '^namespace[[:space:]]*\{'; then
	echo "banned: give the namespace a name: inline namespace NAME_kernels"
	exit 1
fi
# Words that the glossary has replaced, as names of variables, members and types.
if find trainer -name '*.[ch]' | xargs grep -nwE 'seat|subject|board|course'; then
	echo "banned: name it as its type: rank_context or context, workload, shared_status, train_schedule"
	exit 1
fi
echo "banned: none used"
