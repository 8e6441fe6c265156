"""What is noted of a training step: what layers read, how calls hang together, what came back."""
