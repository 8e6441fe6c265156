"""Tests of what shows results: figures by their data and labels, tables by their text."""
