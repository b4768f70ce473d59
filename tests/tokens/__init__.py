"""The estimate of tokens, compared with real tokenizers."""
