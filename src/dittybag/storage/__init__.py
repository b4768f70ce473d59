"""Storage backends: one package per database, with the same modules in each."""
