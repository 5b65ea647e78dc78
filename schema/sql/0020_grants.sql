-- Tokens have a person and grants.
ALTER TABLE token ADD COLUMN person TEXT NOT NULL DEFAULT '';
ALTER TABLE token ADD COLUMN grants TEXT NOT NULL DEFAULT '';
PRAGMA user_version = 20;
