"""TESTING: for the tests of workflows and agents, ours and anybody's. It comes with the extra `testing`.

`conformance` holds what every kind of agent keeps; `kills` kills a session anywhere, lets it go on
and compares; `chains` does that at every step in an affordable time; `faults` dies at a chosen point;
`scripted` is an agent whose answers a test gives.
"""
