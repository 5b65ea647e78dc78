/* SPDX-License-Identifier: Apache-2.0 */
/* db_open.c: chooses the engine by the place of a store. */
#include <stdio.h>

#include "web/store/db/engine.h"

bool db_is_address(const char *place)
{
	return place && (!strncmp(place, "postgresql://", 13) || !strncmp(place, "postgres://", 11));
}

void db_shown(char *ret, size_t room, const char *place)
{
	const char *user = db_is_address(place) ? strstr(place, "://") + 3 : place;
	size_t authority = strcspn(user, "/?"), name = strcspn(user, ":@");
	const char *at = memrchr(user, '@', authority);

	if (!db_is_address(place))
		snprintf(ret, room, "%s", place);
	else
		snprintf(ret, room, "postgresql://%.*s%.*s", at ? (int)name : 0, user,
			 (int)strcspn(at ? at : user, "?"), at ? at : user);
}

int db_open_writer(struct db **ret, const char *place, struct err *err)
{
	return db_is_address(place) ? pg_open_writer(ret, place, err) : sqlite_open_writer(ret, place, err);
}

int db_open_reader(struct db **ret, const char *place, struct err *err)
{
	return db_is_address(place) ? pg_open_reader(ret, place, err) : sqlite_open_reader(ret, place, err);
}

int db_address_version(const char *address, int *ret, struct err *err)
{
	return pg_version(address, ret, err);
}

int db_address_init(const char *address, struct err *err)
{
	return pg_init(address, err);
}

int db_address_upgrade(const char *address, int *ret_from, struct err *err)
{
	return pg_upgrade(address, ret_from, err);
}

int db_address_check(const char *address, bool *ret_password, struct err *err)
{
	return pg_check_address(address, ret_password, err);
}
