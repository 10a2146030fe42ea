"""Models, and other ways to run them."""
