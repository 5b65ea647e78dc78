-- Settings of the one read-write connection.
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA wal_autocheckpoint = 0;
PRAGMA journal_size_limit = 4194304;
PRAGMA cache_size = -4096;
PRAGMA temp_store = MEMORY;
PRAGMA mmap_size = 0;
PRAGMA trusted_schema = OFF;
PRAGMA cell_size_check = ON;
