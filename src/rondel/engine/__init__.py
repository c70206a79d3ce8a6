"""THE LOOP: joins values, files, agents, the repository and workflows; limits, parking, control."""
