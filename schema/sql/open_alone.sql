-- Settings of the one connection to a store whose disk is full: locked for it alone, so that no file need be made to share.
PRAGMA locking_mode = EXCLUSIVE;
PRAGMA wal_autocheckpoint = 0;
PRAGMA query_only = ON;
PRAGMA cache_size = -4096;
PRAGMA temp_store = MEMORY;
PRAGMA mmap_size = 0;
PRAGMA trusted_schema = OFF;
PRAGMA cell_size_check = ON;
