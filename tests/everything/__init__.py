"""A server with every protocol feature, for the conformance suite and the official clients."""
