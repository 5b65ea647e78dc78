-- Version 13: sessions of the page. hash: SHA-256 of what the cookie holds, in hex; token: of the token that was shown, which decides
-- what the session allows at each moment.
CREATE TABLE session (
	hash TEXT PRIMARY KEY,
	token TEXT NOT NULL,
	until_ms INTEGER NOT NULL
) WITHOUT ROWID;
PRAGMA user_version = 13;
