"""Corrected code, offered where it parses, keeps the sink and scans clean."""
