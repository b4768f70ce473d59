"""The built distributions, their installation, and the files that announce them."""
