-- Files of W&B's artifacts: bytes is their size, -1 before this version; born the artifact that they were uploaded for,
-- 0: a reference, which is nowhere here.
ALTER TABLE wandb_file ADD COLUMN bytes bigint NOT NULL DEFAULT -1;
ALTER TABLE wandb_file ADD COLUMN born bigint NOT NULL DEFAULT 0;
UPDATE wandb_file SET born = artifact_id;
CREATE INDEX wandb_file_by_born ON wandb_file (born) WHERE born <> 0 AND born <> artifact_id;
-- How runs are with versions of W&B's artifacts: 1 uses it, 2 has logged it again, 3 both.
ALTER TABLE wandb_use ADD COLUMN how bigint NOT NULL DEFAULT 1;
UPDATE meta SET value = '27' WHERE name = 'version';
