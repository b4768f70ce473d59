"""A server with every feature of the protocol, for the conformance suite and the official clients."""
