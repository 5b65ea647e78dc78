# models.def and one file per model.
