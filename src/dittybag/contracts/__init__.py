"""The tools, prompts and resources that clients see: one module per contract, and the profiles that select them."""
