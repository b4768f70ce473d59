"""Runs of the official conformance suite over HTTP, against the everything server and Dittybag."""
