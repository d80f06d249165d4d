"""Facts of others as tables: ids, names, counts and links, each with its source and version. No text of theirs."""
