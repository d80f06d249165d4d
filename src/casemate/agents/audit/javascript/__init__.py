"""JavaScript and TypeScript, within one file: the syntax tree, the walk over its values, places weak by themselves."""
