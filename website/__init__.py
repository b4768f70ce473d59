"""How the documentation in docs/ becomes a site: `make docs` runs MkDocs with these hooks."""
