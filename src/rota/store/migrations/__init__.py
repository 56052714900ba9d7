"""What the tables went through, one numbered file after another."""
