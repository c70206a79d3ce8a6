"""A workflow for Rondel: an agent works until a judge is content. Importing it imports nothing else."""
