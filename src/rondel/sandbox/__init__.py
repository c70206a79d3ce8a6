"""SANDBOX: what a program that Rondel starts may read, write and reach."""
