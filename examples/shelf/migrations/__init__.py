"""What the shelf's tables went through."""
