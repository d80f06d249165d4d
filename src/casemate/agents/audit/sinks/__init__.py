"""Where untrusted data does harm, family by family."""
