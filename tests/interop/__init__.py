"""The fixture server, driven over standard streams by the official clients."""
