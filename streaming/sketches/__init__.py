"""Count-Min sketches, their candidates, and the compiled loops below both."""
