"""What the facts of a machine mean: one module a theme, each from a Machine to its checks. Pure; start at `verdict`."""
