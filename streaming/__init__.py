"""The speed layer: Count-Min sketches over an event stream, published as provisional lists."""
