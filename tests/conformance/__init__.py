"""The official conformance suite, against the fixture and against Satchel itself, over HTTP."""
