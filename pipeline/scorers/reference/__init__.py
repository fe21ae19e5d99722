"""What a run did against what a reference says it should have done (spec section 4.1)."""
