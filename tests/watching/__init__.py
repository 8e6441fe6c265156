"""Tests of gradient flow while a model trains."""
