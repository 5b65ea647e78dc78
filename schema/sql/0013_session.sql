-- Version 13: sessions of the page. hash: SHA-256 of the cookie's value, in hex; token: of the token used for login, which
-- decides the scope of the session at each moment.
CREATE TABLE session (
	hash TEXT PRIMARY KEY,
	token TEXT NOT NULL,
	until_ms INTEGER NOT NULL
) WITHOUT ROWID;
PRAGMA user_version = 13;
