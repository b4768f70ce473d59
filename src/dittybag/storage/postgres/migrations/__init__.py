"""Numbered schema migrations, and what applies them."""
