"""REPO: git, the working copies that agents edit in, and how an edit gets onto its branch."""
