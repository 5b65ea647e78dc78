-- Nothing in a file: rows of an address have room beside them since then (postgresql/0016_room.sql).
PRAGMA user_version = 16;
