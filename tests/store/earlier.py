# SPDX-License-Identifier: Apache-2.0
"""Makes a store of an earlier version out of one of this version: the SQL, for both databases, that takes away what each
version since 0.1.0 added."""

BACK = {20: "ALTER TABLE token DROP COLUMN person; ALTER TABLE token DROP COLUMN grants",
        21: "DROP INDEX token_of_person; ALTER TABLE token DROP COLUMN issuer; ALTER TABLE token DROP COLUMN subject;"
            "ALTER TABLE token DROP COLUMN parent",
        22: "DROP TABLE run_text; DROP TABLE wandb_artifact; DROP TABLE wandb_alias; DROP TABLE wandb_file; DROP TABLE wandb_use;"
            "DELETE FROM meta WHERE name = 'address_key'",
        23: "DROP TABLE audit; DROP TABLE audit_head",
        24: "ALTER TABLE token DROP COLUMN share; ALTER TABLE token DROP COLUMN experiment_id; ALTER TABLE token DROP COLUMN used_ms",
        25: "DROP TABLE note_text; ALTER TABLE note DROP COLUMN edition; ALTER TABLE note DROP COLUMN editing;"
            "ALTER TABLE note DROP COLUMN written_ms; ALTER TABLE kept_text DROP COLUMN editing",
        26: "DROP TABLE leaving; DROP TABLE retention",
        27: "DROP INDEX wandb_file_by_born; ALTER TABLE wandb_file DROP COLUMN bytes; ALTER TABLE wandb_file DROP COLUMN born;"
            "ALTER TABLE wandb_use DROP COLUMN how"}
FIRST = min(BACK) - 1
