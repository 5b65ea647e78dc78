-- What is settled before a file's first table and stays in it. Said again it would be written again.
PRAGMA auto_vacuum = INCREMENTAL;
