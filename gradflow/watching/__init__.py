"""Gradient flow while a model trains: capture, exact replay, findings, log and sinks.

What one calls is `gradflow.monitor`, above: there samples come before a person's eyes. Nothing is
imported here, so that a recorded training is read and shown without torch.
"""
