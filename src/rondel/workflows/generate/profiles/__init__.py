"""The profiles: what is generated, in which cycles, from which prompts and standards."""
