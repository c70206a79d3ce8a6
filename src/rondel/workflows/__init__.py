"""THE FIVE: each a layout, read, plan, apply and its prompts."""
