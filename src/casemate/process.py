"""The only file that starts processes and pools."""
