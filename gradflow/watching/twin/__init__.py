"""The exact twin of a fused layer: run again from what it read, and pulled back in closed form."""
