"""The use cases of the application: one service per kind of entity, one transaction per use case."""
