-- The chunks of an ended run as one object in the object store of the files; the run then has no rows in chunk.
CREATE TABLE archive (
	run_id bigint PRIMARY KEY,
	object text COLLATE "C" NOT NULL,
	bytes bigint NOT NULL,
	sha256 text NOT NULL
);
CREATE TRIGGER archive_goes AFTER DELETE ON archive FOR EACH ROW EXECUTE FUNCTION artifact_leaves();
UPDATE meta SET value = '17' WHERE name = 'version';
