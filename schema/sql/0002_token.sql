-- Access to the server. hash: SHA-256 of the token in hex; the token itself is not stored. Revoked rows stay, so that
-- revoking the last token does not open the server. scope: 1 read, 2 write, 3 admin.
CREATE TABLE token (
	name TEXT PRIMARY KEY,
	hash TEXT NOT NULL UNIQUE,
	scope INTEGER NOT NULL,
	created_ms INTEGER NOT NULL,
	expires_ms INTEGER,
	revoked_ms INTEGER
) WITHOUT ROWID;
PRAGMA user_version = 2;
