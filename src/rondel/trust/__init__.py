"""TRUST: what of a repository's settings counts, and what the person said yes to.

Decisions are pure: `keys` says what each setting may do, `parts` what would be consented to,
`admit` what counts. `consents` is where the person's word is kept, in their own state folder.
"""
