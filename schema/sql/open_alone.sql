-- Settings of the only connection to a store on a full disk: an exclusive lock, so that no shared-memory file is needed.
PRAGMA locking_mode = EXCLUSIVE;
PRAGMA wal_autocheckpoint = 0;
PRAGMA query_only = ON;
PRAGMA cache_size = -4096;
PRAGMA temp_store = MEMORY;
PRAGMA mmap_size = 0;
PRAGMA trusted_schema = OFF;
PRAGMA cell_size_check = ON;
