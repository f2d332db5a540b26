"""The batch layer: one module per table it fills or deed it does, and the order of a night."""
