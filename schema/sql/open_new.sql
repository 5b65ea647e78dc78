-- Settings that must precede the first table and are stored in the file. Repeating them would write the file again.
PRAGMA auto_vacuum = INCREMENTAL;
