"""Where things are kept. Each backend has a package of its own with the same modules."""
