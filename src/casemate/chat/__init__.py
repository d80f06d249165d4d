"""The words of a conversation and the port that answers it."""
