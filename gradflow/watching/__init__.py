"""Gradient flow while a model trains: capture, exact replay, findings, log and sinks.

Nothing is imported here, so that a recorded training is read and shown without torch.
"""
