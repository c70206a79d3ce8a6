"""THE FIVE: each a layout, what is read, its steps, its prompts and its commands."""
