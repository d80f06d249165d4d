"""The vocabulary of the audit: names that bring untrusted data in, make it harmless, or do harm with it."""
