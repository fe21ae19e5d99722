"""The nouns. Nothing here imports anything of the project but other nouns."""
