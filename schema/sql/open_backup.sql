-- Settings of the connection that writes a backup. The file is synced before it gets its final name.
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA cache_size = -2048;
