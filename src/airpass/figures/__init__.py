"""Pictures. The only part that imports matplotlib."""
