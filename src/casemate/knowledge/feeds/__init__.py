"""One importer a source: each reads an official format as a stream of Nodes, Edges and Aliases."""
