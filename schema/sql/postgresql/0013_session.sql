-- What 0013_session.sql does.
CREATE TABLE session (
	hash text COLLATE "C" PRIMARY KEY,
	token text NOT NULL,
	until_ms bigint NOT NULL
);
UPDATE meta SET value = '13' WHERE name = 'version';
