"""The assembly: builds stores, services and servers from settings. The only package that imports every layer."""
