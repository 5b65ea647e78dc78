-- Location of an experiment's artifacts, given by a client of MLflow's API; '': in the store.
ALTER TABLE experiment ADD COLUMN location TEXT NOT NULL DEFAULT '';
PRAGMA user_version = 7;
