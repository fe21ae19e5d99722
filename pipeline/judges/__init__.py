"""The judge: a transcript and one dimension in, a judgment out; what it could not tell is an outcome, never a number."""
