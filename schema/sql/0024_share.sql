-- Links that show one thing (web/store/auth/share.h): rows of token whose text is the link's secret. share: its kind and target, '': a
-- token; experiment_id: what it shows is there; used_ms: when it was last opened.
ALTER TABLE token ADD COLUMN share TEXT NOT NULL DEFAULT '';
ALTER TABLE token ADD COLUMN experiment_id INTEGER;
ALTER TABLE token ADD COLUMN used_ms INTEGER;
PRAGMA user_version = 24;
