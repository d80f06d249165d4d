"""A run's folder: records are appended, the manifest comes last."""
