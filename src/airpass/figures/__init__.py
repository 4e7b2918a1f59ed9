"""Figures. The only package that imports matplotlib."""
