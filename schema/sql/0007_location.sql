-- Where an experiment's artifacts lie, as a client of MLflow's interface said it; '': in this server's own store.
ALTER TABLE experiment ADD COLUMN location TEXT NOT NULL DEFAULT '';
PRAGMA user_version = 7;
