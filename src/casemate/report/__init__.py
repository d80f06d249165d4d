"""Documents and findings become text, Markdown, HTML, JSON, SARIF."""
