"""Casemate: a private security analyst on your own machine."""

__version__ = "0.1.0"
