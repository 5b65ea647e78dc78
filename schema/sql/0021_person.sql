-- Persons who sign in by a provider, and tokens that have another one's rights.
ALTER TABLE token ADD COLUMN issuer TEXT;
ALTER TABLE token ADD COLUMN subject TEXT;
ALTER TABLE token ADD COLUMN parent TEXT;
CREATE UNIQUE INDEX token_of_person ON token (issuer, subject);
PRAGMA user_version = 21;
