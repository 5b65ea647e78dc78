-- Who changed what (web/store/audit/audit.h), numbered without gaps. hash: of the entry and of the hash before it.
CREATE TABLE audit (
	seq INTEGER PRIMARY KEY,
	time_ms INTEGER NOT NULL,
	via TEXT NOT NULL,
	author TEXT NOT NULL,
	action TEXT NOT NULL,
	object TEXT NOT NULL,
	id TEXT NOT NULL,
	name TEXT NOT NULL,
	experiment TEXT NOT NULL,
	detail TEXT NOT NULL,
	hash TEXT NOT NULL
);
CREATE INDEX audit_by_object ON audit (object, id, seq);
-- One row: the last entry, so that entries missing at the end are noticed.
CREATE TABLE audit_head (
	one INTEGER PRIMARY KEY,
	seq INTEGER NOT NULL,
	hash TEXT NOT NULL
);
PRAGMA user_version = 23;
