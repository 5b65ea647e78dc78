-- Settings of the connection that a backup is written through. The file has no name yet; it is synced before it gets one.
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA cache_size = -2048;
