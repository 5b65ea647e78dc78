-- The chunks of an ended run as one object of the store that holds the files: then no row of chunk is its.
CREATE TABLE archive (
	run_id bigint PRIMARY KEY,
	object text COLLATE "C" NOT NULL,
	bytes bigint NOT NULL,
	sha256 text NOT NULL
);
CREATE TRIGGER archive_goes AFTER DELETE ON archive FOR EACH ROW EXECUTE FUNCTION artifact_leaves();
UPDATE meta SET value = '17' WHERE name = 'version';
