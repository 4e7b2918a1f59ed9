"""Responses on candidate places from other programs. Each is an extra: `pip install 'airpass[sionna]'`."""
