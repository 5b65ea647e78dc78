# strategies.def and one file per strategy.
