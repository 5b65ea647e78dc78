-- What 0012_objects.sql does.
ALTER TABLE artifact ADD COLUMN object text COLLATE "C";
CREATE TABLE object (
	name text COLLATE "C" PRIMARY KEY,
	since_ms bigint NOT NULL,
	doomed bigint NOT NULL DEFAULT 0
);
CREATE INDEX object_by_age ON object (since_ms);
CREATE FUNCTION artifact_leaves() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO object VALUES (OLD.object, CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint));
	RETURN NULL;
END $$;
CREATE TRIGGER artifact_goes AFTER DELETE ON artifact FOR EACH ROW WHEN (OLD.object IS NOT NULL)
	EXECUTE FUNCTION artifact_leaves();
CREATE TRIGGER artifact_changes AFTER UPDATE ON artifact FOR EACH ROW
	WHEN (OLD.object IS NOT NULL AND OLD.object IS DISTINCT FROM NEW.object) EXECUTE FUNCTION artifact_leaves();
UPDATE meta SET value = '12' WHERE name = 'version';
