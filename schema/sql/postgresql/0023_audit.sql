-- Who changed what (web/store/audit/audit.h), numbered without gaps. hash: of the entry and of the hash before it.
CREATE TABLE audit (
	seq bigint PRIMARY KEY,
	time_ms bigint NOT NULL,
	via text NOT NULL,
	author text NOT NULL,
	action text NOT NULL,
	object text COLLATE "C" NOT NULL,
	id text COLLATE "C" NOT NULL,
	name text NOT NULL,
	experiment text NOT NULL,
	detail text NOT NULL,
	hash text NOT NULL
);
CREATE INDEX audit_by_object ON audit (object, id, seq);
-- One row: the last entry, so that entries missing at the end are noticed.
CREATE TABLE audit_head (
	one bigint PRIMARY KEY,
	seq bigint NOT NULL,
	hash text NOT NULL
);
UPDATE meta SET value = '23' WHERE name = 'version';
