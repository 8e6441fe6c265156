"""Inspections of a user's own model, by what is asked of it."""
