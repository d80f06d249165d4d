"""What the analysis of one file works on: values, places, scopes, notes and their summary."""
