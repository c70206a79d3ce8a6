"""THE LOOP: joins values, files, hands and workflows; limits, parking, control."""
