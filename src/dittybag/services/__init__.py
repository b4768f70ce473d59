"""What a caller may do: one module per noun, each use case one transaction."""
