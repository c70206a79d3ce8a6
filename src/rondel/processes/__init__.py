"""CHILDREN: programs that are started, watched over, and ended with all that they started."""
