"""A launch command as somebody wrote it, judged: what each word does, what is wrong, and the command that is right."""
