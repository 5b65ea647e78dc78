-- Who may use the server. hash: SHA-256 of the token in hex; the token itself is kept nowhere. A revoked row stays, so
-- that taking the last one back does not open the server to everybody. scope: 1 read, 2 write, 3 admin.
CREATE TABLE token (
	name TEXT PRIMARY KEY,
	hash TEXT NOT NULL UNIQUE,
	scope INTEGER NOT NULL,
	created_ms INTEGER NOT NULL,
	expires_ms INTEGER,
	revoked_ms INTEGER
) WITHOUT ROWID;
PRAGMA user_version = 2;
