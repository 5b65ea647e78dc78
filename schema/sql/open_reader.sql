-- Settings of every read-only connection.
PRAGMA wal_autocheckpoint = 0;
PRAGMA query_only = ON;
PRAGMA cache_size = -2048;
PRAGMA temp_store = MEMORY;
PRAGMA mmap_size = 0;
PRAGMA trusted_schema = OFF;
PRAGMA cell_size_check = ON;
