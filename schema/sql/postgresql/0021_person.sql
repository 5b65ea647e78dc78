-- Persons who sign in by a provider, and tokens that have another one's rights.
ALTER TABLE token ADD COLUMN issuer text COLLATE "C", ADD COLUMN subject text COLLATE "C", ADD COLUMN parent text COLLATE "C";
CREATE UNIQUE INDEX token_of_person ON token (issuer, subject);
UPDATE meta SET value = '21' WHERE name = 'version';
