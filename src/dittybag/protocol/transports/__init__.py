"""Transports without HTTP: each passes frames to a `Session` and sends its messages through an `Outlet`."""
