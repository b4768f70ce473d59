"""The assembly builds stores, services and servers from settings. Only this package imports every layer."""
