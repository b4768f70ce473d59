"""The official conformance suite, against the fixture and against Dittybag itself, over HTTP."""
