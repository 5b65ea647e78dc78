-- Tokens have a person and grants.
ALTER TABLE token ADD COLUMN person text NOT NULL DEFAULT '';
ALTER TABLE token ADD COLUMN grants text NOT NULL DEFAULT '';
UPDATE meta SET value = '20' WHERE name = 'version';
