-- Nothing in a file: only PostgreSQL reserves room for new versions of rows (postgresql/0016_room.sql).
PRAGMA user_version = 16;
